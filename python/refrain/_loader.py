# SPDX-License-Identifier: MIT
"""The Loader class, a convenient layer over the extension."""

import atexit
import difflib
import itertools
import json
import operator
import os
import textwrap
import weakref

from . import _errors, _refrain, _values

_KINDS = {'number': 'int', 'real': 'float', 'echo': "float or 'auto'",
          'bytes': "int or a text such as '512M'", 'flag': 'bool',
          'sides': "int or 'WIDTHxHEIGHT'", 'text': 'str'}
_UNLIMITED = 1 << 20    # epochs, where a run has no end
_CLASSES_MAX = 10000000
# Help that differs from the library's.
_HELP = {'epochs': 'Number of epochs, each of which serves every example '
                   'fresh exactly once; default: the run has no end.',
         'echo_log': "Changes of the factor for echo='auto', from echo_log() "
                     'of another run; this run repeats them.'}

# Keywords that are not members of the configuration.
_OTHERS = ('decode', 'augment_fn', 'targets', 'cpus', 'state', 'timeout',
           'even')

_open = weakref.WeakSet()


@atexit.register
def _close_all():
    """Threads of a loader must not call into an interpreter that has ended."""
    for loader in list(_open):
        loader.close()


def members():
    """The members of the configuration that Loader() takes as keywords, a dict
    of name to (kind, argument or words, help)."""
    return {name: (kind, arg, text)
            for name, kind, arg, text, _ in _refrain.members()}


def _is_echoing(text):
    """Is this echo factor a number above 1?"""
    over, _, under = text.decode(errors='replace').partition('/')
    try:
        return float(over) / float(under or 1) > 1
    except (ValueError, ZeroDivisionError):
        return False        # 'auto', or what the library refuses


def _texts(keywords):
    """The members of the configuration, as refrain_config_set() takes them."""
    known = {row[0]: row for row in _refrain.members()}
    texts = {}
    for name, value in keywords.items():
        if name not in known or name == 'dataset':
            near = difflib.get_close_matches(name, [*known, *_OTHERS], 1)
            raise TypeError('Loader() has no keyword %r%s; refrain.members() '
                            'lists the keywords' %
                            (name, ' (did you mean %s?)' % near[0] if near
                             else ''))
        if value is not None:
            _, kind, _, _, count = known[name]
            texts[name.encode()] = _values.text(name, kind, count, value)
    return texts


def _check_targets(targets, examples):
    """Each example has a target."""
    if targets is not None and not callable(targets) and \
            len(targets) != examples:
        raise _values.invalid(
            'targets has %d elements: the dataset has %d examples' %
            (len(targets), examples))


class Loader(_refrain.Loader):
    """Loader(dataset, *, batch, echo=1, epochs=None, ...)

    Batches of a dataset for one trainer. Threads of the library read, decode,
    augment and echo the examples.

        with refrain.Loader('/data/train', batch=256, epochs=90) as loader:
            for epoch in range(90):
                for batch in loader:
                    train(batch.data, batch.labels)

    One iter() is one epoch, and the next iter() is the next epoch. A loop that
    was left in the middle of an epoch continues it. The echoes that remain
    after the last fresh example are served at the end of the run, so a number
    above 1 for `echo` requires `epochs`. Without `epochs` the run has no end.
    With `echo` above 1 epochs differ much in steps, as an epoch ends with its
    last fresh example: early ones are short, and the last one has the echoes
    that remain. even=True divides the run into equal parts instead.

    `dataset` is a path: a directory with one directory of images for each
    class, a list of images, a tar file or a directory of them, or a file of
    records. A list of paths makes one dataset of several, for `mix`. The members of the configuration are keywords; they are listed
    below. The others are:

    decode      a function (data: bytes, path: str, index: int) that returns an
                array of uint8 and shape (height, width, 3), or bytes. It
                decodes formats other than JPEG and PNG. It holds the GIL,
                so it is slow. Needs decoded_max_bytes.
    augment_fn  a function (data: bytes, shape: (height, width, 3), seed: int)
                that returns sample_bytes bytes. It is slow, too.
    targets     an array, a list or a tensor with one element for each example,
                or a function of an array of indices, for batch.targets: labels
                that are not class numbers.
    cpus        numbers of the processors that the threads may run on.
    state       what state_dict() returned; the loader continues from there.
    timeout     seconds to wait for a batch; default: no limit.
    even        if true, one iter() is one of `epochs` equal parts of the run's
                steps, as for a scheduler or a validation after each. The
                batches are the same; batch.epoch and batch.ends_epoch still
                follow the fresh examples. Needs epochs and a fixed echo.

    Raises ConfigError (also a ValueError) for an invalid value, TypeError for
    an unknown keyword, a missing one, or one of a wrong type, NotFoundError if the dataset does not
    exist, StateError if `state` does not fit, TimeoutError, or Error. All but
    TypeError are OSErrors with errno, path and stage. Ctrl-C ends any wait
    within 100 ms.
    """

    def __init__(self, dataset, *, decode=None, augment_fn=None, targets=None,
                 cpus=None, state=None, timeout=None, even=False, **keywords):
        self._texts = _texts(keywords)
        self._even = bool(even)
        if b'batch' not in self._texts:
            raise TypeError('batch= is required: the number of examples in a '
                            'step')
        self._dataset = _values.datasets(dataset)
        self._others = (_values.function('decode', decode),
                        _values.function('augment_fn', augment_fn),
                        _values.targets(targets))
        self._cpus = _values.cpus(cpus)
        self._timeout = _values.seconds(timeout)
        self._begin(_values.state(state))
        _open.add(self)
        try:
            _check_targets(self._others[2], self.examples)
        except _errors.ConfigError:
            self.close()
            raise

    def _begin(self, state):
        texts = dict(self._texts)
        texts[b'dataset'] = os.fsencode(self._dataset)
        if b'epochs' not in texts:
            if _is_echoing(texts.get(b'echo', b'1')):
                raise TypeError(
                    'epochs= is required with an echo above 1: the echoes of '
                    'the last epoch are served at its end')
            if self._even:
                raise _values.invalid('even needs epochs: a run without an '
                                      'end has no equal parts')
            texts[b'epochs'] = b'%d' % _UNLIMITED
        elif texts[b'epochs'] == b'0':
            raise _values.invalid('epochs is 0: it must be at least 1')
        if self._even and texts.get(b'echo') == b'auto':
            raise _values.invalid("even needs a fixed echo: with 'auto' the "
                                  'number of steps changes')
        try:
            super().__init__(texts, self._dataset, *self._others, self._cpus,
                             state, self._timeout, self._even)
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
        """Number of epochs of the run, or None if it has no end."""
        given = self._texts.get(b'epochs')
        return None if given is None else int(given)

    @property
    def total_steps(self):
        """Number of steps of the run on this rank, or None if it has no end.
        With echo='auto' it holds if the factor stays the same."""
        if self.epochs is None:
            return None
        return self.step + self.steps_left

    def __len__(self):
        """Number of steps of the epoch that iter() is in or begins next."""
        epoch = self.epoch
        begin = self._epoch_end(epoch - 1) if epoch else 0
        if epoch + 1 == self.epochs:
            return self.total_steps - begin
        return self._epoch_end(epoch) - begin

    def set_epoch(self, epoch):
        """Go to an epoch. If the loader is in it or begins it next, nothing
        happens: after a restart it goes on in the middle of the epoch. Else
        the loader is opened again at the beginning of the epoch.

        Raises ValueError if the run does not have the epoch, and with
        echo='auto', because the stream then depends on the past."""
        epoch = operator.index(epoch)
        if epoch == self.epoch:
            return
        epochs = self.epochs or _UNLIMITED
        if not 0 <= epoch < epochs:
            raise ValueError('epoch %d is not in a run of %d epochs' %
                             (epoch, epochs))
        if self._texts.get(b'echo') == b'auto':
            raise ValueError("with echo='auto' epochs come in order: this is "
                             'epoch %d' % self.epoch)
        step = self._epoch_end(epoch - 1) if epoch else 0
        self._reopen(self._state(step)['state'])

    # -- Position -------------------------------------------------------------

    def state_dict(self):
        """The position after the last batch that was returned: a small dict
        for load_state_dict(), or for state= of another loader with the same
        configuration. A trainer that fetches batches ahead saves
        batch.state_dict() of the last batch it has used.

        Raises ClosedError after close()."""
        return self._state()

    def load_state_dict(self, state):
        """Open the loader again at a position. If it is of another dataset or
        configuration, raises StateError, and the loader is closed."""
        self._reopen(_values.state(state))

    # -- Asking ---------------------------------------------------------------

    def stats(self):
        """The statistics so far, a dict. refrain_loader(3) describes its keys;
        `bottleneck` names what the trainer waits for. If `rereads` grows,
        `memory_wanted_bytes` is the value of memory_bytes that avoids it."""
        return json.loads(self._stats_json())

    @property
    def classes(self):
        """Names of the classes, a list: labels are its indices. Labels that
        are numbers may have gaps; None stands for a label without a class.

        Raises ValueError if the list would have over 10 million elements."""
        if self._class_count > _CLASSES_MAX:
            raise ValueError('labels go up to %d: classes would be too long' %
                             (self._class_count - 1))
        return [self._class(i) for i in range(self._class_count)]

    @property
    def annotation_classes(self):
        """Names of the classes of the boxes in annotations=, a list: the values
        of the column 'boxes.class' are its indices. Empty without them."""
        return list(itertools.takewhile(
            lambda name: name is not None,
            map(self._annotation_class, itertools.count())))


def _argument(kind, arg, count):
    """Describe the values that a member takes."""
    if kind == 'word':
        return ' or '.join(map(repr, arg.split('|')))
    return _KINDS[kind] + (', or %d of them' % count if count > 1 else '')


def _document():
    lines = [Loader.__doc__, '\n    Members of the configuration:\n']
    for name, kind, arg, text, count in _refrain.members():
        if name == 'dataset':
            continue
        lines.append('\n    %s: %s\n' % (name, _argument(kind, arg, count)))
        lines.append(textwrap.indent(textwrap.fill(
            _HELP.get(name, text), 70), ' ' * 8) + '\n')
    Loader.__doc__ = ''.join(lines)


_document()
