# SPDX-License-Identifier: MIT
"""refrain for PyTorch: datasets for training and evaluation, tensors without a
copy, ranks from torch.distributed, and positions to save. EchoDataset repeats
the examples of any other dataset, in the workers of a DataLoader.

    import refrain.torch

    data = refrain.torch.IterableDataset('/data/train', batch=256, echo=2,
                                         epochs=90, type='f32', layout='nchw')
    for epoch in range(90):
        for images, labels in data:
            ...

torch.utils.data.DataLoader(data, batch_size=None, num_workers=0) works,
too, but does not make anything faster.
"""

import collections
import threading

import torch
import torch.utils.data

from . import _values
from ._echo import Echo, checked_epoch
from ._loader import Loader

__all__ = ['EchoDataset', 'EvalDataset', 'IterableDataset', 'rank_and_world',
           'rows', 'tensor', 'to_device']


def rank_and_world():
    """(rank, world) of torch.distributed; (0, 1) if it is not initialised."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def tensor(batch, name='data', copy=None):
    """An array of a batch as a tensor of the same shape and type, without a
    copy. The batch goes back after the tensor has died.

    `name` is data, labels, status or the name of a column. PyTorch does not
    have the types of the other arrays, and perhaps not uint16. ValueError if
    the batch does not have the array, or was released.

    Read-only memory, such as status and all arrays of a share, is copied,
    because PyTorch has no read-only tensors. copy=False prevents the copy:
    writing to the tensor of a share then ends the process (SIGSEGV)."""
    view = batch.view(name)
    if copy is False and memoryview(view).readonly:
        return torch.from_dlpack(view._lent())
    return torch.from_dlpack(view)


def rows(batch, name):
    """The rows of a column, such as boxes: a nested tensor with one component
    for each example if PyTorch has nested_tensor_from_jagged(), or else
    (values, offsets): example i has the rows offsets[i] to offsets[i + 1] - 1
    of values. Values are as those of tensor(). ValueError if each example has
    one row."""
    column = batch[name]
    if column.offsets is None:
        raise ValueError('column %r has one row for each example: use '
                         'tensor()' % name)
    values = tensor(batch, name)
    offsets = torch.from_numpy(column.offsets.astype('int64'))
    jagged = getattr(getattr(torch, 'nested', None),
                     'nested_tensor_from_jagged', None)
    return jagged(values, offsets) if jagged else (values, offsets)


def _field(batch, name):
    """A column as a tensor or rows; uint16 as int32."""
    column = batch[name]
    if column.offsets is not None:
        return rows(batch, name)
    if column.values.dtype == 'uint16':
        return torch.from_numpy(column.values.astype('int32'))
    return tensor(batch, name)


def _moved(field, device):
    if isinstance(field, tuple):
        return tuple(part.to(device) for part in field)
    return field.to(device)


class _InFlight:
    """Owners of memory that copies to a device still read, as (event behind
    the copy, owner), oldest first. Threads may share it."""

    def __init__(self):
        self._waiting = collections.deque()
        self._lock = threading.Lock()

    def add(self, event, owner, most=1 << 30):
        """Keep the owner until the event has happened. Waits until at most
        `most` are kept."""
        with self._lock:
            self._waiting.append((event, owner))
        self.sweep()
        while len(self._waiting) > most:
            self._wait_for_oldest()

    def sweep(self):
        """Drop the owners whose event has happened."""
        with self._lock:
            while self._waiting and self._waiting[0][0].query():
                self._waiting.popleft()

    def _wait_for_oldest(self):
        with self._lock:
            event = self._waiting[0][0] if self._waiting else None
        if event is not None:
            event.synchronize()
        self.sweep()

    def __len__(self):
        return len(self._waiting)


in_flight = _InFlight()


def _event_behind(device):
    """An event behind all work on the device's current stream."""
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


def to_device(tensors, device, ahead=2):
    """Start to copy tensors to a device, and return the list of the copies. A
    batch whose tensors are copied goes back to the loader only after the event
    behind the copies on the device's current stream.

    Copies to a GPU are not complete on return. At most the copies of the last
    `ahead` calls are still under way then: to_device() waits for older ones.
    Each of them may hold a batch, so batches_ahead must be above `ahead`.
    Copies to other kinds of devices are complete on return."""
    device = torch.device(device)
    flies = device.type == 'cuda'
    copies = [t.to(device, non_blocking=flies) for t in tensors]
    if flies:
        in_flight.add(_event_behind(device), list(tensors), ahead + 1)
    return copies


def _pinned(source):
    copy = torch.empty(source.shape, dtype=source.dtype, pin_memory=True)
    return copy.copy_(source)


class IterableDataset(torch.utils.data.IterableDataset):
    """IterableDataset(dataset, *, batch, device=None, pin_memory=False, ...)

    Yields (data, targets) for each batch of an epoch. `data` has the type and
    shape of refrain.Batch.data: with layout='nchw' (count, 3, height, width).
    `targets` are the labels, int64 of shape (count,), or what targets= makes.
    With fields= it yields (data, targets, fields), a dict of the further
    columns: rows() of those with several rows, else tensors.

    Keywords are those of refrain.Loader, and

    pin_memory  copy data and targets into pinned memory. The batch goes back
                to the loader at once.
    device      copy both to this device. The way to a GPU is through pinned
                memory.
    rank, world default: those of torch.distributed if it is initialised. Ranks
                then get equally many examples (pad_ranks) and end each epoch
                at the same step.

    The first iter() opens the loader, so the object can be sent to another
    process before. One iter() is one epoch, and the next iter() is the next
    epoch. Tensors that are not copied lend the memory of the loader: keep at
    most batches_ahead of them. With share= they are always copied.

    Opening the loader raises the errors of refrain.Loader. In a worker of a
    DataLoader, iter() raises RuntimeError.
    """

    def __init__(self, dataset, *, batch, device=None, pin_memory=False,
                 rank=None, world=None, state=None, **keywords):
        super().__init__()
        self._dataset = dataset
        self._keywords = dict(keywords, batch=batch)
        self._given = (rank, world)
        self._device = device
        self._pin = pin_memory or (
            device is not None and torch.device(device).type == 'cuda')
        self._state = _values.state(state)
        self._loader = None

    def __getstate__(self):
        if self._loader is not None:
            raise TypeError('a dataset that is open cannot be pickled')
        return self.__dict__

    @property
    def loader(self):
        """The refrain.Loader. It is opened if it is not open yet."""
        if self._loader is None:
            self._loader = self._opened()
        return self._loader

    def _ranks(self):
        rank, world = rank_and_world()
        return (rank if self._given[0] is None else self._given[0],
                world if self._given[1] is None else self._given[1])

    def _opened(self):
        rank, world = self._ranks()
        keywords = dict(self._keywords)
        if world > 1:
            keywords.setdefault('pad_ranks', True)
        return Loader(self._dataset, rank=rank, world=world,
                      state=self._state, **keywords)

    @staticmethod
    def _check_worker():
        if torch.utils.data.get_worker_info() is not None:
            raise RuntimeError(
                'refrain decodes in threads of its own, not in worker '
                'processes: use DataLoader(dataset, batch_size=None, '
                'num_workers=0), or iterate the dataset')

    def _converted(self, batch):
        copied = self._pin or (self._device is not None and
                               torch.device(self._device).type != 'cpu')
        copy = False if copied else None    # once is enough
        data = tensor(batch, copy=copy)
        if self._keywords.get('targets') is None:
            targets = tensor(batch, 'labels', copy)
        else:
            targets = torch.as_tensor(batch.targets)
        if self._pin:
            data, targets = _pinned(data), _pinned(targets)
        if self._device is not None:
            data, targets = to_device((data, targets), self._device)
        if not self._keywords.get('fields'):
            return data, targets
        fields = {name: _field(batch, name) for name in batch.keys()[2:]}
        if self._device is not None:
            fields = {name: _moved(field, self._device)
                      for name, field in fields.items()}
        return data, targets, fields

    def __iter__(self):
        self._check_worker()
        for batch in self.loader:
            converted = self._converted(batch)
            del batch           # the tensors have it
            yield converted
            del converted

    def __len__(self):
        return len(self.loader)

    def set_epoch(self, epoch):
        """Go to an epoch: see refrain.Loader.set_epoch()."""
        self.loader.set_epoch(epoch)

    def state_dict(self):
        """The position after the last batch that was yielded."""
        return self.loader.state_dict()

    def load_state_dict(self, state):
        """Continue from a position that state_dict() returned. Raises
        StateError if it belongs to another dataset or configuration."""
        if self._loader is None:
            self._state = _values.state(state)
        else:
            self._loader.load_state_dict(state)

    def stats(self):
        """The statistics of the loader: see refrain.Loader.stats()."""
        return self.loader.stats()

    def close(self):
        """Close the loader. The next iter() opens another one."""
        if self._loader is not None:
            self._loader.close()
        self._loader = None


class EvalDataset(IterableDataset):
    """EvalDataset(dataset, *, batch, device=None, pin_memory=False, ...)

    Yields (data, targets, mask) for each batch of an evaluation: every example
    once over all ranks, in order, with a centre crop. All ranks have equally
    many steps. `mask` is a bool tensor of shape (count,), False for examples
    that only pad a rank. Each iter() begins from the first example."""

    def __init__(self, dataset, *, batch, **keywords):
        keywords = {'augment': 'eval', **keywords, 'in_order': True,
                    'last': 'short', 'pad_ranks': True, 'epochs': 1}
        super().__init__(dataset, batch=batch, **keywords)

    def _mask(self, batch, size, ranks, examples):
        place = torch.arange(batch.count) + batch.step * size
        return place * ranks[1] + ranks[0] < examples

    def __iter__(self):
        self._check_worker()
        self.close()
        loader, ranks = self.loader, self._ranks()
        size, examples = int(self._keywords['batch']), loader.examples
        for batch in loader:
            mask = self._mask(batch, size, ranks, examples)
            if self._device is not None:
                mask = mask.to(self._device)
            converted = (*self._converted(batch), mask)
            del batch
            yield converted
            del converted
        self.close()


_SEED_MAX = (1 << 63) - 1


class _Examples:
    """The examples of a dataset with numbers that one stage of several gets:
    in a new random order each epoch, or in order. Has states as torchdata
    defines them."""

    def __init__(self, dataset, shuffle, seed, place):
        self._dataset, self._shuffle, self._seed = dataset, shuffle, int(seed)
        self._rank, self._world, self._worker, self._workers = place
        self._epoch, self._next = 0, 0

    def __len__(self):
        n = len(self._dataset)
        each = -(-n // self._world)         # of a rank: ranks end together
        return len(range(self._worker, each, self._workers))

    def set_epoch(self, epoch):
        """Begin another epoch."""
        if epoch != self._epoch:
            self._epoch, self._next = epoch, 0

    def _order(self):
        n = len(self._dataset)
        if not self._shuffle:
            return range(n)
        generator = torch.Generator()
        generator.manual_seed(self._seed * 1000003 + self._epoch & _SEED_MAX)
        return torch.randperm(n, generator=generator).tolist()

    def __iter__(self):
        order, count = self._order(), len(self)
        while self._next < count:
            # A rank that has less than others takes some from the beginning.
            at = self._next * self._workers + self._worker
            example = self._dataset[
                order[(at * self._world + self._rank) % len(order)]]
            self._next += 1
            yield example
        self._next = 0

    def state_dict(self):
        """The epoch, and the next example of it."""
        return {'epoch': self._epoch, 'next': self._next}

    def load_state_dict(self, state):
        """Go there."""
        self._epoch, self._next = state['epoch'], state['next']


class EchoDataset(torch.utils.data.IterableDataset):
    """EchoDataset(dataset, factor=2, *, batch=64, augment=None, shuffle=True,
    ...)

    Serves each example of a dataset of decoded examples `factor` times, and
    augments each serving. One line makes a pipeline echo:

        data = EchoDataset(decoded, factor=4, batch=256, augment=augment)
        loader = DataLoader(data, batch_size=256, num_workers=8)
        for epoch in range(90):
            data.set_epoch(epoch)
            for images, labels in loader:
                ...

    In each worker of a DataLoader it reads, decodes, echoes and augments that
    worker's part of the dataset.

    dataset     a dataset of decoded examples, before random augmentation. One
                with numbers (__getitem__, __len__) is divided among the ranks
                and the workers, and shuffled. An IterableDataset must divide
                and shuffle itself, as usual.
    shuffle     take a dataset with numbers in a new random order each epoch.
    batch       the batch_size of the DataLoader. No batch then has an example
                twice.
    rank, world default: those of torch.distributed if it is initialised. Ranks
                then get equally many examples of a dataset with numbers, up to
                one of them twice.

    The other keywords are those of refrain.Echo: window (for each worker),
    seed, augment, min_lag, echo_max, echo_log, allow_duplicates.

    One iter() is one epoch. A DataLoader whose workers end with each epoch
    (persistent_workers=False) begins with the epoch of set_epoch() each time;
    else iter() goes on with the next epoch.

    factor='auto' needs num_workers=0, since a worker does not see how long the
    trainer takes. A position (state_dict()) belongs to one worker. Save it with
    num_workers=0, or with torchdata's StatefulDataLoader, which does so in the
    workers.
    """

    def __init__(self, dataset, factor=2, *, shuffle=True, rank=None,
                 world=None, state=None, **keywords):
        super().__init__()
        self._dataset, self._shuffle = dataset, shuffle
        self._keywords = dict(keywords, factor=factor)
        self._given = (rank, world)
        self._state = state
        self._kept = None       # (place, state) of the pickled stage
        self._stage = self._place = None
        # Workers that live on see it, too.
        self._epoch = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._seen = 0
        Echo((), **self._keywords)      # names a wrong keyword here

    def __getstate__(self):
        state = dict(self.__dict__, _stage=None, _place=None)
        state['_given'] = self._ranks()     # a worker does not know them
        if self._stage is not None:
            state['_kept'] = (self._place, self.state_dict())
        return state

    def _ranks(self):
        rank, world = rank_and_world()
        return (rank if self._given[0] is None else self._given[0],
                world if self._given[1] is None else self._given[1])

    def _here(self):
        """(rank, world, worker, workers) of this process."""
        info = torch.utils.data.get_worker_info()
        if info is None:
            return (*self._ranks(), 0, 1)
        return (*self._ranks(), info.id, info.num_workers)

    def _source(self, place):
        if isinstance(self._dataset, torch.utils.data.IterableDataset) or \
                not hasattr(self._dataset, '__getitem__'):
            return self._dataset
        return _Examples(self._dataset, self._shuffle,
                         self._keywords.get('seed', 0), place)

    def _check_auto(self):
        measures = self._keywords['factor'] == 'auto' and \
            self._keywords.get('echo_log') is None
        if measures and torch.utils.data.get_worker_info() is not None:
            raise RuntimeError(
                "factor='auto' needs num_workers=0: a worker does not see how "
                'long the trainer takes. Or put the workers below the stage: '
                "refrain.echo(DataLoader(dataset, batch_size=None), 'auto')")

    def _opened(self, place):
        rank, world, worker, workers = place
        stage = Echo(self._source(place), **self._keywords,
                     rank=rank * workers + worker, world=world * workers)
        if self._state is None and self._kept is not None and \
                self._kept[0] == place:
            self._state = self._kept[1]
        if self._state is not None:
            stage.load_state_dict(self._state)
        self._state = self._kept = None
        return stage

    @property
    def stage(self):
        """The refrain.Echo of this process, for its stats()."""
        place = self._here()
        if self._stage is None or self._place != place:
            self._check_auto()
            self._stage, self._place = self._opened(place), place
        return self._stage

    def _follow_epoch(self):
        """Go to the epoch of set_epoch(), once for each call of it."""
        calls, epoch = self._epoch.tolist()
        if calls != self._seen:
            self.stage.set_epoch(epoch)
        self._seen = calls

    def __iter__(self):
        self._follow_epoch()
        return iter(self.stage)

    def __len__(self):
        """Number of servings of an epoch of this rank. TypeError if the length
        of the dataset is not known, and with 'auto'."""
        rank, world = self._ranks()
        return len(Echo(self._source((rank, world, 0, 1)), **self._keywords))

    def set_epoch(self, epoch):
        """The next iter() begins this epoch, unless it is in the middle of
        it; as DistributedSampler.set_epoch()."""
        self._epoch[1] = checked_epoch(epoch)
        self._epoch[0] += 1

    def state_dict(self):
        """The position of this process: see refrain.Echo.state_dict()."""
        self._follow_epoch()
        return self.stage.state_dict()

    def load_state_dict(self, state):
        """Continue from a position. Raises StateError if it belongs to another
        configuration, rank or worker."""
        self.stage.load_state_dict(state)
        self._seen = self._epoch[0].item()
