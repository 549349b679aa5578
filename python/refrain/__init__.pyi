# SPDX-License-Identifier: MIT
from os import PathLike
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Literal,
                    Mapping, Optional, Sequence, SupportsFloat, SupportsIndex,
                    Tuple, Type)

from ._refrain import Batch as Batch
from ._refrain import Column as Column
from ._refrain import View as View
from ._refrain import Echo as _EchoCore
from ._refrain import Loader as _Core
from .plan import Plan as Plan
from .plan import PlannedSampler as PlannedSampler
from .plan import find_mount as find_mount

_Path = str | PathLike[str]
_Real = SupportsFloat | str
_Reals = _Real | Sequence[SupportsFloat]
_Echo = SupportsFloat | str

ECHO_AUTO: str
__version__: str

class Error(OSError):
    path: Optional[str]
    stage: Optional[str]
    step: Optional[int]

class ConfigError(Error, ValueError): ...
class StateError(Error, ValueError): ...
class NotFoundError(Error, FileNotFoundError): ...
class TimeoutError(Error): ...
class ClosedError(Error, ValueError): ...

def members() -> Dict[str, Tuple[str, Optional[str], str]]: ...
def version() -> str: ...

class Loader(_Core):
    def __init__(
        self,
        dataset: _Path | Sequence[_Path],
        *,
        source: Literal['auto', 'folder', 'list', 'tar', 'raw'] | None = ...,
        root: _Path | None = ...,
        record_bytes: SupportsIndex | None = ...,
        label_bytes: SupportsIndex | None = ...,
        batch: SupportsIndex,
        epochs: SupportsIndex | None = ...,
        seed: SupportsIndex | None = ...,
        echo: _Echo | None = ...,
        echo_point: Literal['before', 'after', 'batch'] | None = ...,
        window: SupportsIndex | None = ...,
        min_lag: SupportsIndex | None = ...,
        shuffle_window: SupportsIndex | None = ...,
        rank: SupportsIndex | None = ...,
        world: SupportsIndex | None = ...,
        last: Literal['short', 'drop'] | None = ...,
        height: SupportsIndex | None = ...,
        width: SupportsIndex | None = ...,
        type: Literal['u8', 'f16', 'f32'] | None = ...,
        layout: Literal['nhwc', 'nchw'] | None = ...,
        augment: Literal['train', 'eval', 'none', 'fit', 'iou'] | None = ...,
        mean: _Reals | None = ...,
        std: _Reals | None = ...,
        area_min: _Real | None = ...,
        area_max: _Real | None = ...,
        aspect_min: _Real | None = ...,
        aspect_max: _Real | None = ...,
        jitter: _Reals | None = ...,
        cutout: SupportsIndex | None = ...,
        decoded_max_bytes: SupportsIndex | str | None = ...,
        sample_bytes: SupportsIndex | str | None = ...,
        policy: Literal['substitute', 'zero', 'fail'] | None = ...,
        max_pixels: SupportsIndex | None = ...,
        threads: SupportsIndex | None = ...,
        batches_ahead: SupportsIndex | None = ...,
        reads_ahead: SupportsIndex | None = ...,
        memory_bytes: SupportsIndex | str | None = ...,
        nice: SupportsIndex | None = ...,
        echo_max: _Real | None = ...,
        echo_log: str | None = ...,
        open_timeout_ms: SupportsIndex | None = ...,
        max_damage: _Real | None = ...,
        share: str | None = ...,
        share_jobs: SupportsIndex | None = ...,
        share_batch: SupportsIndex | None = ...,
        share_slow: Literal['wait', 'solo'] | None = ...,
        share_grace_s: SupportsIndex | None = ...,
        fields: str | None = ...,
        annotations: _Path | None = ...,
        epoch_examples: SupportsIndex | None = ...,
        subset: SupportsIndex | None = ...,
        subset_seed: SupportsIndex | None = ...,
        bucket: SupportsIndex | None = ...,
        mix: str | None = ...,
        service: str | None = ...,
        service_dataset: str | None = ...,
        service_local: Literal['late', 'also'] | None = ...,
        service_secret: _Path | None = ...,
        in_order: bool | None = ...,
        no_flip: bool | None = ...,
        no_orient: bool | None = ...,
        pad_ranks: bool | None = ...,
        allow_duplicates: bool | None = ...,
        no_normalise: bool | None = ...,
        no_mount_help: bool | None = ...,
        admit_planned: bool | None = ...,
        exact: bool | None = ...,
        equal_ranks: bool | None = ...,
        size: SupportsIndex | str | None = ...,
        decode: Callable[[bytes, str, int], Any] | None = ...,
        augment_fn: Callable[[bytes, Tuple[int, int, int], int], Any]
        | None = ...,
        targets: Any = ...,
        cpus: Sequence[int] | None = ...,
        state: Mapping[str, Any] | bytes | None = ...,
        timeout: float | None = ...,
        even: bool = ...,
    ) -> None: ...
    def __enter__(self) -> Loader: ...
    def __exit__(self, *unused: object) -> None: ...
    def __iter__(self) -> Iterator[Batch]: ...
    def __next__(self) -> Batch: ...
    def __len__(self) -> int: ...
    @property
    def epochs(self) -> Optional[int]: ...
    @property
    def total_steps(self) -> Optional[int]: ...
    @property
    def classes(self) -> List[Optional[str]]: ...
    @property
    def annotation_classes(self) -> List[str]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> Dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def stats(self) -> Dict[str, Any]: ...

class Echo(_EchoCore):
    def __init__(
        self,
        source: Iterable[Any],
        factor: _Echo = ...,
        *,
        batch: SupportsIndex = ...,
        window: SupportsIndex | None = ...,
        seed: SupportsIndex = ...,
        augment: Callable[..., Any] | None = ...,
        min_lag: SupportsIndex | None = ...,
        echo_max: _Real | None = ...,
        echo_log: str | None = ...,
        rank: SupportsIndex | None = ...,
        world: SupportsIndex | None = ...,
        allow_duplicates: bool | None = ...,
        state: Mapping[str, Any] | None = ...,
    ) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> Dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...

def echo(
    source: Iterable[Any],
    factor: _Echo = ...,
    *,
    batch: SupportsIndex = ...,
    window: SupportsIndex | None = ...,
    seed: SupportsIndex = ...,
    augment: Callable[..., Any] | None = ...,
    min_lag: SupportsIndex | None = ...,
    echo_max: _Real | None = ...,
    echo_log: str | None = ...,
    rank: SupportsIndex | None = ...,
    world: SupportsIndex | None = ...,
    allow_duplicates: bool | None = ...,
    state: Mapping[str, Any] | None = ...,
) -> Echo: ...
