# SPDX-License-Identifier: MIT
"""refrain: batches of training examples, read and decoded once and echoed.

    for batch in refrain.Loader('/data/train', batch=256, echo='auto'):
        train(torch.from_dlpack(batch), batch.labels)

Loader is the loader, and refrain.torch has its datasets for PyTorch. echo()
repeats the decoded examples of any other pipeline in the same way. Plan and
PlannedSampler tell a refrain mount the order in which another loader reads.
"""

from .plan import Plan, PlannedSampler, find_mount

try:
    from . import _refrain
except ImportError as _error:
    raise ImportError(
        "refrain's library cannot be loaded (%s): install it from the same "
        'tree (./configure && make && make install && ldconfig), or put the '
        'directory of librefrain.so.0 into LD_LIBRARY_PATH; refrain/plan.py '
        'works without it' % _error, name='refrain._refrain') from _error

from . import _errors
from ._errors import (ClosedError, ConfigError, Error, NotFoundError,
                      StateError, TimeoutError)
from ._echo import Echo, echo
from ._loader import Loader, members
from ._refrain import Batch, Column, View

_refrain._set_error_factory(_errors.make)

ECHO_AUTO = 'auto'


def version():
    """The version of the library, as '0.1.0'."""
    n = _refrain.version()
    return '%d.%d.%d' % (n // 10000, n // 100 % 100, n % 100)


__version__ = version()
__all__ = ['Batch', 'ClosedError', 'Column', 'ConfigError', 'ECHO_AUTO', 'Echo',
           'Error', 'Loader', 'NotFoundError', 'Plan', 'PlannedSampler',
           'StateError', 'TimeoutError', 'View', 'echo', 'find_mount',
           'members', 'version']
