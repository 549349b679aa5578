# SPDX-License-Identifier: MIT
"""The loader, with what is convenient written around the extension."""

import array
import atexit
import json
import os
import weakref

from . import _errors, _refrain

_KINDS = {'number': 'int', 'real': 'float', 'echo': "float or 'auto'",
          'bytes': "int or a text such as '512M'", 'flag': 'bool',
          'sides': "int or 'WIDTHxHEIGHT'", 'text': 'str'}
_UNLIMITED = 1 << 20    # epochs, where a run has no end

_open = weakref.WeakSet()


@atexit.register
def _close_all():
    """Threads of a loader must not call into an interpreter that has gone."""
    for loader in list(_open):
        loader.close()


def members():
    """The members of the configuration that Loader() takes as keywords, a dict
    of name to (kind, argument or words, help)."""
    return {name: (kind, arg, text)
            for name, kind, arg, text, _ in _refrain.members()}


def _text(name, value):
    """A value as refrain_config_set() takes it."""
    if isinstance(value, bool):
        return b'1' if value else b'0'
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsencode(value)
    if hasattr(value, '__index__'):
        return b'%d' % value.__index__()
    if hasattr(value, '__float__'):
        return repr(float(value)).encode()
    try:
        parts = [_text(name, part) for part in value]
    except TypeError:
        raise TypeError('%s cannot be a %s' % (name, type(value).__name__)) \
            from None
    return b','.join(parts)


def _is_echoing(echo):
    """Is it a number above 1?"""
    text = _text('echo', echo).decode(errors='replace')
    over, _, under = text.partition('/')
    try:
        return float(over) / float(under or 1) > 1
    except (ValueError, ZeroDivisionError):
        return False        # 'auto', or what the library refuses


def _check_names(keywords):
    known = {row[0] for row in _refrain.members()}
    for name in keywords:
        if name not in known or name == 'dataset':
            raise TypeError('Loader() has no keyword %r; refrain.members() '
                            'lists them' % name)


def _state_of(state):
    if state is None or isinstance(state, bytes):
        return state
    try:
        version, data = state['refrain'], state['state']
    except (TypeError, KeyError):
        raise TypeError('a state is what state_dict() returned') from None
    if version != 1:
        raise ValueError('the state is of version %r: this is version 1' %
                         version)
    return bytes(data)


class Loader(_refrain.Loader):
    """Loader(dataset, *, batch, echo=1, epochs=None, ...)

    Batches of a dataset for one trainer, read, decoded, augmented and echoed
    by threads of the library.

        with refrain.Loader('/data/train', batch=256, epochs=90) as loader:
            for epoch in range(90):
                for batch in loader:
                    train(batch.data, batch.labels)

    One iter() is one epoch and the next one goes on. A loop that was left in
    the middle of an epoch continues it. Echoes that the last epoch leaves are
    served at its end, so `epochs` is required with a number above 1 for
    `echo`; without it the run has no end.

    Arguments beside the members of the configuration, which are below:

    decode      a function (data: bytes, path: str, index: int) -> an array of
                uint8 (height, width, 3), or bytes. For anything that is no
                JPEG. It holds the GIL, so it is slow. decoded_max_bytes is
                required with it.
    augment_fn  a function (data: bytes, shape: tuple, seed: int) -> bytes of
                sample_bytes. As slow.
    targets     an array, or a function of an array of indices: batch.targets
                for labels that are no numbers of classes.
    cpus        processors that the threads may run on.
    state       what state_dict() returned, to go on from there.
    timeout     seconds to wait for a batch, then TimeoutError; None: for ever.

    Raises ConfigError (a ValueError) for values that make no sense,
    NotFoundError, StateError, TimeoutError, or Error: all of them OSErrors with
    errno, path and stage. Ctrl-C ends any wait within 100 ms.
    """

    def __init__(self, dataset, *, decode=None, augment_fn=None, targets=None,
                 cpus=None, state=None, timeout=None, **keywords):
        _check_names(keywords)
        self._keywords = {k: v for k, v in keywords.items() if v is not None}
        self._dataset = os.fspath(dataset)
        self._others = (decode, augment_fn, targets)
        self._cpus = None if cpus is None else \
            array.array('I', cpus).tobytes()
        self._timeout = -1.0 if timeout is None else float(timeout)
        if 'batch' not in self._keywords:
            raise TypeError('batch= is required: examples a step')
        self._begin(_state_of(state))
        _open.add(self)

    def _begin(self, state):
        texts = {name.encode(): _text(name, value)
                 for name, value in self._keywords.items()}
        texts[b'dataset'] = os.fsencode(self._dataset)
        if b'epochs' not in texts:
            if _is_echoing(self._keywords.get('echo', 1)):
                raise TypeError(
                    'epochs= is required with an echo above 1: the echoes of '
                    'the last epoch are served at its end')
            texts[b'epochs'] = b'%d' % _UNLIMITED
        try:
            super().__init__(texts, self._dataset, *self._others, self._cpus,
                             state, self._timeout)
        except _errors.StateError as error:
            if state is not None:
                raise
            raise _errors.of_dataset(error) from None

    def _reopen(self, state):
        self.close()
        self._reset()
        self._begin(state)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __repr__(self):
        return '<refrain.Loader of %r, %s>' % (
            self._dataset, 'closed' if self.closed else
            'step %d' % self.step)

    def __reduce__(self):
        raise TypeError('a Loader cannot be pickled: open one in each process')

    # -- Epochs ---------------------------------------------------------------

    @property
    def epochs(self):
        """Epochs of the run; None: without end."""
        given = self._keywords.get('epochs')
        return None if given is None else int(given)

    @property
    def total_steps(self):
        """Steps of the run, on this rank; None: without end. With echo='auto'
        if the factor changed no more."""
        if self.epochs is None:
            return None
        return self.step + self.steps_left

    def __len__(self):
        """The steps of this epoch: of the one that iter() is in or begins."""
        epoch = self.epoch
        begin = self._epoch_end(epoch - 1) if epoch else 0
        if epoch + 1 == self.epochs:
            return self.total_steps - begin
        return self._epoch_end(epoch) - begin

    def set_epoch(self, epoch):
        """Let the next iter() be this epoch. Nothing happens if it is, or if
        the loader is in the middle of it, as after a restart; else the loader
        is opened again at its beginning. ValueError beyond the run, and with
        echo='auto', whose stream depends on what came before."""
        if epoch == self.epoch:
            return
        if epoch < 0 or (self.epochs is not None and epoch >= self.epochs):
            raise ValueError('epoch %d is not in a run of %s' %
                             (epoch, self.epochs))
        if self._keywords.get('echo') == 'auto':
            raise ValueError("with echo='auto' epochs come in order: this is "
                             'epoch %d' % self.epoch)
        step = self._epoch_end(epoch - 1) if epoch else 0
        self._reopen(self._state(step)['state'])

    # -- Position -------------------------------------------------------------

    def state_dict(self):
        """The position after the last batch that was returned, as a small
        dict for load_state_dict() or state= of another loader with the same
        configuration. A trainer that fetches ahead saves batch.state_dict()
        of the last batch that it has used."""
        return self._state()

    def load_state_dict(self, state):
        """Go on from there: the loader is opened again. StateError for a
        state of another dataset or configuration; then it is closed."""
        self._reopen(_state_of(state))

    # -- Asking ---------------------------------------------------------------

    def stats(self):
        """The statistics of the library as a dict: see
        struct refrain_stats."""
        return json.loads(self._stats_json())

    @property
    def classes(self):
        """Names of the classes, by their numbers."""
        return [self._class(i) for i in range(self._class_count)]


def _document():
    lines = [Loader.__doc__, '\n    Members of the configuration:\n']
    for name, (kind, arg, text) in members().items():
        if name == 'dataset':
            continue
        kind = arg.replace('|', ', ') if kind == 'word' else _KINDS[kind]
        lines.append('\n    %s: %s\n        %s\n' % (name, kind, text))
    Loader.__doc__ = ''.join(lines)


_document()
