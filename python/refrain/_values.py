# SPDX-License-Identifier: MIT
"""Values of Loader's keywords: what callers may write, as the library takes
it. Each error names the keyword: TypeError for a wrong type, ConfigError for a
value that cannot be."""

import array
import collections.abc
import errno
import math
import operator
import os

from . import _errors

_KINDS = {'number': 'an int', 'real': 'a number', 'bytes':
          "an int or a text such as '512M'", 'flag': 'True or False',
          'echo': "a number or 'auto'", 'text': 'a str', 'word': 'a str',
          'sides': "an int or a text such as '320x240' (width x height)"}


def _wrong(name, what, value):
    return TypeError('%s must be %s, not %s' %
                     (name, what, type(value).__name__))


def invalid(message):
    """The exception for a value that cannot be."""
    return _errors.make(errno.EINVAL, message, None, 'open', None)


def _plain(value):
    """What NumPy's scalars and arrays or tensors without a dimension hold."""
    if hasattr(value, 'item') and not getattr(value, 'shape', None):
        return value.item()
    return value


def encoded(name, value):
    """A text or path, as bytes."""
    try:
        data = os.fsencode(value)
    except UnicodeEncodeError as error:
        raise invalid('%s: %s' % (name, error)) from None
    if b'\0' in data:
        raise invalid('%s contains a null byte' % name)
    return data


def _number(kind, value):
    """The text of a number, or None."""
    try:
        return b'%d' % operator.index(value)
    except TypeError:
        if not hasattr(value, '__float__'):
            return None
    value = float(value)
    if kind in ('number', 'bytes') and value.is_integer():
        return b'%d' % int(value)
    return repr(value).encode()


def _elements(value):
    """The elements of a sequence, an array or a tensor, or None."""
    if isinstance(value, (dict, set, frozenset)):
        return None     # without an order
    try:
        return list(value)
    except TypeError:
        return None


def text(name, kind, count, value):
    """Convert a value to the text that refrain_config_set() takes. Members
    with a count above 1 take sequences."""
    value = _plain(value)
    if isinstance(value, (str, bytes, os.PathLike)):
        return encoded(name, value)
    if kind == 'flag' and isinstance(value, bool):
        return b'1' if value else b'0'
    if kind not in ('text', 'word') and not isinstance(value, bool):
        elements = _elements(value)
        if elements is None:
            number = _number(kind, value)
            if number is not None:
                return number
        elif count > 1:
            return b','.join(text(name, kind, count, e) for e in elements)
    what = _KINDS[kind]
    raise _wrong(name, what if count == 1 else
                 '%s or %d of them' % (what, count), value)


def path(name, value):
    """A path, as os.fspath() makes it."""
    try:
        value = os.fspath(value)
    except TypeError:
        raise _wrong(name, 'a path', value) from None
    encoded(name, value)
    return value


def datasets(value):
    """A path, or several, one in a line."""
    if isinstance(value, (list, tuple)):
        if not value:
            raise invalid('dataset is an empty list')
        return '\n'.join(os.fsdecode(path('dataset', v)) for v in value)
    return path('dataset', value)


def function(name, value):
    """A function, or None."""
    if value is not None and not callable(value):
        raise _wrong(name, 'a function', value)
    return value


def cpus(value):
    """Numbers of processors, as the library has them; None for None."""
    if value is None:
        return None
    what = 'the numbers of processors, such as [0, 1]'
    if isinstance(value, (str, bytes, dict)):
        raise _wrong('cpus', what, value)
    try:
        numbers = [operator.index(_plain(n)) for n in value]
    except TypeError:
        raise _wrong('cpus', what, value) from None
    if not numbers:
        raise invalid('cpus is empty: the threads need a processor')
    for n in numbers:
        if not 0 <= n < 1 << 32:
            raise invalid('cpus: %d is not the number of a processor' % n)
    return array.array('I', numbers).tobytes()


def seconds(value):
    """A time limit; below 0 for None."""
    value = _plain(value)
    if value is None:
        return -1.0
    try:
        limit = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong('timeout', 'a number of seconds', value) from None
    if math.isnan(limit) or limit < 0:
        raise invalid('timeout is %g: it must be at least 0, or None for no '
                      'limit' % limit)
    return limit


def targets(value):
    """A function of an array of indices, or an array with a target for each
    example; None for None."""
    if value is None or callable(value):
        return value
    import numpy  # pylint: disable=import-outside-toplevel
    what = 'an array, a sequence or a function'
    if isinstance(value, (str, bytes)):
        raise _wrong('targets', what, value)
    try:
        made = numpy.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError('targets cannot be made an array: %s' % error) \
            from error
    if made.ndim == 0:
        raise _wrong('targets', what, value)
    return made


def state(value):
    """The bytes of what state_dict() returned; None for None."""
    if value is None or isinstance(value, bytes):
        return value
    what = 'what state_dict() returned'
    if not isinstance(value, collections.abc.Mapping):
        raise _wrong('state', what, value)
    version, data = value.get('refrain'), value.get('state')
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("state must be %s: it has no bytes as 'state'" % what)
    if version != 1:
        raise _errors.make(errno.EBADMSG, 'the state has version %r: only '
                           'version 1 is known' % (version,), None, 'open',
                           None)
    return bytes(data)
