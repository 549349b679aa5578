# SPDX-License-Identifier: MIT
"""Exceptions of the loader."""

import builtins
import errno as _errno
import os


class Error(OSError):
    """The loader failed. An OSError with its errno and strerror, and

    path     the file or dataset that it concerns, or None (also `filename`)
    stage    'open', 'read', 'decode', 'augment', or None
    step     the step of the run, or None
    """

    path = None
    stage = None
    step = None

    def __str__(self):
        # Made of a message alone, as by a DataLoader from one of a worker.
        return self.strerror or super().__str__()


class ConfigError(Error, ValueError):
    """A keyword has an invalid value; the message names the keyword."""


class StateError(Error, ValueError):
    """A saved state is damaged, or belongs to another dataset or
    configuration."""


class NotFoundError(Error, FileNotFoundError):
    """The dataset does not exist."""


class TimeoutError(Error, builtins.TimeoutError):  # pylint: disable=W0622
    """No batch came, or a dataset did not open, within the time limit."""


class ClosedError(Error, ValueError):
    """The loader was closed."""


_OPEN = {_errno.EINVAL: ConfigError, _errno.E2BIG: ConfigError,
         _errno.ENOENT: NotFoundError, _errno.EBADMSG: StateError,
         _errno.ESTALE: StateError, _errno.ETIMEDOUT: TimeoutError}
_CALL = {_errno.ETIMEDOUT: TimeoutError, _errno.ESHUTDOWN: ClosedError}


def of_dataset(error):
    """The error of an open without a state: EBADMSG then means a damaged list
    or shard."""
    other = Error(error.errno, error.strerror)
    other.path = other.filename = error.path
    other.stage = error.stage
    return other


def make(number, message, path, stage, step):
    """Make the exception for an errno. The extension module calls this."""
    kinds = _OPEN if stage == 'open' else _CALL
    error = kinds.get(number, Error)(number, message or os.strerror(number))
    error.path = error.filename = path
    error.stage = stage
    error.step = step
    return error
