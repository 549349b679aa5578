# SPDX-License-Identifier: MIT
"""The echo stage: decoded examples of any iterable, served several times."""

import collections.abc
import copy
import errno
import inspect
import itertools
import operator

from . import _errors, _refrain, _values

_VERSION = 1


def _takes_seed(augment):
    """Has the function a parameter named seed?"""
    try:
        return 'seed' in inspect.signature(augment).parameters
    except (TypeError, ValueError):     # one without a signature
        return False


def _is_stateful(thing):
    return hasattr(thing, 'state_dict') and hasattr(thing, 'load_state_dict')


def _length(source):
    """The number of examples, or None."""
    try:
        return len(source)
    except (TypeError, NotImplementedError):
        return None


def checked_epoch(epoch):
    """A number of an epoch, checked."""
    epoch = operator.index(epoch)
    if not 0 <= epoch < 1 << 63:
        raise ValueError('epoch %d: it must be at least 0, and below 2^63' %
                         epoch)
    return epoch


def _again(kind, arguments, state):
    """Unpickle a stage."""
    stage = kind(**arguments)
    if state is not None:
        stage.load_state_dict(state)
    return stage


class _Servings(map):
    """The iterator of a stage. It is not the stage, whose iter() begins an
    epoch: iter() of an iterator must not. It is a map as __next__() in Python
    could lose a serving to a signal. torchdata asks it for its position."""

    def __new__(cls, stage):
        self = super().__new__(cls, next, itertools.repeat(stage))
        self._stage = stage
        return self

    def state_dict(self):
        """That of the stage."""
        return self._stage.state_dict()

    def load_state_dict(self, state):
        """That of the stage."""
        self._stage.load_state_dict(state)


class Echo(_refrain.Echo):
    """Echo(source, factor=2, *, batch=64, window=None, seed=0, augment=None,
    ...)

    Serves each example of an iterable `factor` times, in the order in which
    refrain.Loader serves the examples of a dataset: exactly as often as the
    factor says, never twice in one batch, and spread over a window.

        examples = refrain.echo(DataLoader(decoded, batch_size=None,
                                           num_workers=8, prefetch_factor=16),
                                factor=4, augment=augment)
        for example in examples:
            ...

    One iter() is one epoch: one pass over the source, with all echoes. A loop
    that was left in the middle continues the epoch.

    source      an iterable of examples of any kind, such as a DataLoader. They
                are kept as they are, not copied. If it has set_epoch(), that is
                called at the beginning of each epoch.
    factor      servings of each example: a number of at least 1, such as 2.5,
                a text such as '5/2', or 'auto', which measures which factor
                hides the time of the source, and changes it.
    batch       the number of servings that a step of the trainer has, at most.
                Use 1 if the source gives whole batches.
    window      the maximum number of examples that are kept; default: 16
                batches, at least 1024. Less uses less memory, and a window that
                is too small is refused.
    seed        seed of the order and of the augmentation.
    augment     a function of an example; what it returns is served. It must not
                change the example, which is served again. If it has a parameter
                `seed`, it gets a number that is different for each serving, and
                the same in a run that is repeated or resumed.
    min_lag     the minimum number of steps between two servings of an example.
    echo_max    upper limit of 'auto'; default: 4.
    echo_log    what echo_log() of a run with 'auto' returned: the changes to
                make, instead of measuring.
    rank, world this trainer's number, and how many there are. Each has its own
                source; only order and seeds depend on them.
    allow_duplicates  accept a small window, with which a batch can have an
                example twice.
    state       what state_dict() returned.

    Raises ConfigError (also a ValueError) for an invalid value, TypeError for
    one of a wrong type, StateError if `state` does not fit. Exceptions of the
    source and of augment, and KeyboardInterrupt in them, are passed on; the next
    next() continues with the same example. A generator ends with its exception:
    the source is then opened again, at that example.
    """

    def __init__(self, source, factor=2, *, batch=64, window=None, seed=0,
                 augment=None, min_lag=None, echo_max=None, echo_log=None,
                 rank=None, world=None, allow_duplicates=None, state=None):
        self._arguments = dict(
            source=source, factor=factor, batch=batch, window=window,
            seed=seed, augment=augment, min_lag=min_lag, echo_max=echo_max,
            echo_log=echo_log, rank=rank, world=world,
            allow_duplicates=allow_duplicates)
        if not hasattr(source, '__iter__') and \
                not hasattr(source, '__getitem__'):
            raise TypeError('source must be an iterable, not %s' %
                            type(source).__name__)
        self._source = source
        self._texts = _texts(self._arguments)
        self._auto = self._texts[b'echo'] == b'auto'
        super().__init__(_values.function('augment', augment),
                         _takes_seed(augment))
        self._epoch = 0
        self._notes = []        # (number of the next example, state of source)
        self._resume = None     # the same, of a state that was loaded
        self._pristine = True
        self._opened(None)
        if state is not None:
            self.load_state_dict(state)

    def _opened(self, state):
        examples = (_length(self._source) or 0) if self._auto else 0
        self._open(self._texts, state, examples)

    def __repr__(self):
        return '<refrain.Echo of %s, epoch %d>' % (
            type(self._source).__name__, self.epoch)

    def __reduce__(self):
        return _again, (type(self), self._arguments,
                        None if self._pristine else self.state_dict())

    # -- Epochs ---------------------------------------------------------------

    @property
    def epoch(self):
        """Number of the epoch that iter() is in or begins next."""
        return self._epoch + self._ended

    def _go_to(self, epoch):
        self._begin(epoch)
        self._epoch = epoch
        self._resume = None
        self._notes = []
        self._pristine = False

    def set_epoch(self, epoch):
        """Go to an epoch. If the stage is in it or begins it next, nothing
        happens; else the next iter() begins it, and echoes that remain are
        dropped."""
        epoch = checked_epoch(epoch)
        if epoch != self.epoch:
            self._go_to(epoch)

    def __iter__(self):
        if self._ended:
            self._go_to(self._epoch + 1)
        if not self._attached:
            self._prepare()
        return _Servings(self)

    def _prepare(self):
        """Open the source where the stage needs it."""
        if hasattr(self._source, 'set_epoch'):
            self._source.set_epoch(self._epoch)
        at = 0
        if self._resume is not None:
            at, state = self._resume
            self._source.load_state_dict(copy.deepcopy(state))
        iterator = iter(self._source)
        self._notes = []
        self._pristine = False
        self._attach(iterator, at,
                     self._note if _is_stateful(self._source) else None)
        self._resume = None     # now, as a signal may come before

    def _open_again(self, broken, at):
        """An iterator of the source in place of one that an exception has
        ended; its next example is `at`. None if there is no more."""
        iterator, begin = iter(self._source), 0
        if iterator is broken and not inspect.isgenerator(broken):
            return None         # it still knows where it is: at its end
        if self._notes:
            begin, state = self._notes[-1]
            self._source.load_state_dict(copy.deepcopy(state))
            iterator = iter(self._source)
        passed = sum(1 for _ in itertools.islice(iterator, at - begin))
        if iterator is broken or passed != at - begin:
            raise RuntimeError(
                'the source has ended with the exception that it raised, and '
                'cannot begin again: examples would be lost')
        return iterator

    def __len__(self):
        """Number of servings of an epoch. TypeError if the length of the
        source is not known, and with 'auto'."""
        if self._auto:
            raise TypeError("with factor='auto' the length of an epoch is not "
                            'known')
        return self._servings(len(self._source))

    # -- Position -------------------------------------------------------------

    def _note(self, example):
        """Keep the source's state before an example; returns when to do so
        again."""
        oldest = self._oldest()
        while len(self._notes) > 1 and self._notes[1][0] <= oldest:
            del self._notes[0]
        self._notes.append(
            (example, copy.deepcopy(self._source.state_dict())))
        return example + max(self.stats()['window'] // 8, 1)

    def state_dict(self):
        """The position after the last serving, a dict for load_state_dict() or
        state=. It has no examples: those that are still to be served are taken
        from the source again. A source with state_dict() and load_state_dict()
        continues from a state of its own that the dict has; another one must
        give the same examples again from its beginning."""
        if self._ended:
            self._go_to(self._epoch + 1)
        state = {'refrain_echo': _VERSION, 'state': self._state(),
                 'epoch': self._epoch, 'source': None, 'source_at': 0}
        if self._resume is not None:
            state['source_at'], state['source'] = self._resume
        oldest = self._oldest()
        for at, source in self._notes:
            if at <= oldest:
                state['source_at'], state['source'] = at, source
        return state

    def load_state_dict(self, state):
        """Continue from a position. Raises StateError if it belongs to another
        configuration; the stage then stays where it is."""
        if not isinstance(state, collections.abc.Mapping) or \
                'refrain_echo' not in state:
            raise TypeError('state must be what state_dict() of an echo stage '
                            'returned')
        if state['refrain_echo'] != _VERSION:
            raise _errors.make(
                errno.EBADMSG, 'the state has version %r: only version %d is '
                'known' % (state['refrain_echo'], _VERSION), None, 'open',
                None)
        if state['source'] is not None and not _is_stateful(self._source):
            raise _errors.make(
                errno.ESTALE, 'the state has one of the source, which has no '
                'load_state_dict()', None, 'open', None)
        self._opened(bytes(state['state']))
        self._epoch = operator.index(state['epoch'])
        self._notes = []
        self._resume = None
        self._pristine = False
        if state['source'] is not None:
            self._resume = (state['source_at'], state['source'])


_MEMBERS = {'factor': 'echo', 'batch': 'batch', 'window': 'window',
            'seed': 'seed', 'min_lag': 'min_lag', 'echo_max': 'echo_max',
            'echo_log': 'echo_log', 'rank': 'rank', 'world': 'world',
            'allow_duplicates': 'allow_duplicates'}


def _texts(arguments):
    """The members of the configuration, as refrain_config_set() takes them."""
    kinds = {row[0]: row for row in _refrain.members()}
    return {member.encode(): _values.text(name, kinds[member][1],
                                          kinds[member][4], arguments[name])
            for name, member in _MEMBERS.items()
            if arguments[name] is not None or name == 'factor'}


def echo(source, factor=2, **keywords):
    """echo(source, factor=2, *, batch=64, window=None, seed=0, augment=None,
    ...)

    Serve each example of an iterable several times: an Echo of these
    arguments."""
    return Echo(source, factor, **keywords)
