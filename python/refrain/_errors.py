# SPDX-License-Identifier: MIT
"""Exceptions of the loader."""

import builtins
import errno as _errno
import os


class Error(OSError):
    """The loader failed. An OSError with its errno and strerror, and

    path     the file or dataset that it failed at, or None (also `filename`)
    stage    'open', 'read', 'decode', 'augment', or None
    step     the step of the run, or None
    """

    path = None
    stage = None
    step = None

    def __str__(self):
        return self.strerror or ''


class ConfigError(Error, ValueError):
    """A member of the configuration that makes no sense; it is named."""


class StateError(Error, ValueError):
    """A state that is damaged, or of another dataset or configuration."""


class NotFoundError(Error, FileNotFoundError):
    """The dataset is not there."""


class TimeoutError(Error, builtins.TimeoutError):  # pylint: disable=W0622
    """Nothing came in time."""


class ClosedError(Error, ValueError):
    """The loader was closed."""


_OPEN = {_errno.EINVAL: ConfigError, _errno.E2BIG: ConfigError,
         _errno.ENOENT: NotFoundError, _errno.EBADMSG: StateError,
         _errno.ESTALE: StateError, _errno.ETIMEDOUT: TimeoutError}
_CALL = {_errno.ETIMEDOUT: TimeoutError, _errno.ESHUTDOWN: ClosedError}


def of_dataset(error):
    """EBADMSG of an open that had no state: a damaged list or shard."""
    other = Error(error.errno, error.strerror)
    other.path = other.filename = error.path
    other.stage = error.stage
    return other


def make(number, message, path, stage, step):
    """The exception of an errno; the extension module calls this."""
    kinds = _OPEN if stage == 'open' else _CALL
    error = kinds.get(number, Error)(number, message or os.strerror(number))
    error.path = error.filename = path
    error.stage = stage
    error.step = step
    return error
