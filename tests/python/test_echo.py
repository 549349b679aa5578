# SPDX-License-Identifier: MIT
"""Tests of refrain.echo, which repeats the examples of any iterable by the
schedule."""

import collections
import copy
import fractions
import gc
import inspect
import itertools
import multiprocessing
import pickle
import random
import re
import sys
import threading
import weakref

import pytest

import refrain
from conftest import TREE


class Counted:
    """An iterable of numbers that counts how many are taken."""

    def __init__(self, n):
        self.n, self.given, self.epochs = n, 0, []

    def __len__(self):
        return self.n

    def set_epoch(self, epoch):
        """Record the epochs that were set."""
        self.epochs.append(epoch)

    def __iter__(self):
        for i in range(self.n):
            self.given += 1
            yield i


class Stateful:
    """An iterable of numbers that has states, like datasets of torchdata."""

    def __init__(self, n):
        self.n, self.at, self.given, self.states = n, 0, 0, 0

    def __iter__(self):
        while self.at < self.n:
            self.given += 1
            self.at += 1
            yield self.at - 1
        self.at = 0

    def state_dict(self):
        """Return the position."""
        self.states += 1
        return {'at': self.at}

    def load_state_dict(self, state):
        """Go to the position."""
        self.at = state['at']


def pair(example, seed):
    """An augmentation that returns the example and the seed."""
    return example, seed


def run(source, *args, **keywords):
    """Return the servings of one epoch."""
    return list(refrain.echo(source, *args, augment=pair, **keywords))


FACTORS = [1, 1.5, 2, '5/2', 4, fractions.Fraction(7, 3)]


@pytest.mark.parametrize('seed', range(20))
def test_each_example_is_served_exactly_as_often_as_the_factor_says(seed):
    dice = random.Random(seed)
    for factor in FACTORS:
        n, batch = dice.randrange(400), dice.randrange(1, 20)
        stage = refrain.Echo(range(n), factor, batch=batch, seed=seed)
        served = list(stage)
        e = fractions.Fraction(factor)
        assert len(served) == len(stage) == n * e // 1
        counts = collections.Counter(served)
        assert [counts[i] for i in range(n)] == [
            (i + 1) * e // 1 - i * e // 1 for i in range(n)]
        stats = stage.stats()
        assert stats['fresh'] == stats['pulled'] == n
        assert stats['kept'] == 0 and stats['served'] == len(served)


@pytest.mark.parametrize('factor', [2, 4, 8])
def test_no_batch_has_an_example_twice_and_the_window_is_kept(factor):
    stage = refrain.Echo(range(2000), factor, batch=16, window=256)
    least, last = 1 << 60, {}
    for n, example in enumerate(stage):
        least = min(least, n // 16 - last.get(example, -(1 << 60)))
        last[example] = n // 16
        assert stage.stats()['kept'] <= 256
    assert least >= 1
    assert stage.stats()['duplicates'] == 0


def test_factor_1_passes_the_source_through():
    assert list(refrain.echo('abcdef', 1)) == list('abcdef')


def test_examples_are_not_copied_and_not_kept_for_longer_than_needed():
    class Example:
        """An object whose identity can be compared."""

    examples = [Example() for _ in range(300)]
    served = list(refrain.echo(examples, 2, batch=4, window=20))
    assert {id(e) for e in served} == {id(e) for e in examples}
    del served
    alive = [weakref.ref(e) for e in examples]
    stage = refrain.Echo(iter(examples), 2, batch=4, window=20)
    examples.clear()
    for _ in stage:
        gc.collect(0)
        assert sum(r() is not None for r in alive) <= 300
    assert stage.stats()['kept'] == 0
    gc.collect()
    # one example is that of the loop
    assert sum(r() is not None for r in alive) <= 1


def test_seeds_are_given_to_an_augmentation_that_takes_them():
    seen = run(range(50), 3, seed=1)
    assert len({seed for _, seed in seen}) == 150
    assert seen == run(range(50), 3, seed=1)
    assert {s for _, s in seen}.isdisjoint(s for _, s in
                                           run(range(50), 3, seed=2))
    plain = list(refrain.echo(range(50), 3, seed=1, augment=lambda x: -x))
    assert plain == [-x for x, _ in seen]

    class Transform:
        """A transform like those of torchvision."""

        def __call__(self, *args):
            return args

    assert list(refrain.echo([7], 2, augment=Transform())) == [(7,)] * 2


def test_epochs_differ_and_can_be_chosen():
    source = Counted(60)
    stage = refrain.Echo(source, 2, batch=4, window=20, augment=pair)
    epochs = [list(stage) for _ in range(3)]
    assert source.epochs == [0, 1, 2] and stage.epoch == 3
    assert len({seed for epoch in epochs for _, seed in epoch}) == 360
    assert [x for x, _ in epochs[0]] != [x for x, _ in epochs[1]]
    other = refrain.Echo(Counted(60), 2, batch=4, window=20, augment=pair)
    other.set_epoch(2)
    assert list(other) == epochs[2]
    other.set_epoch(0)
    assert list(itertools.islice(other, 30)) == epochs[0][:30]
    # the stage is in this epoch already
    other.set_epoch(0)
    assert list(other) == epochs[0][30:]            # the stage continues
    assert next(iter(other)) == epochs[1][0]
    # the rest of the epoch is dropped
    other.set_epoch(2)
    assert list(other) == epochs[2]
    for wrong in -1, 1 << 63, 1 << 64:
        with pytest.raises(ValueError, match='at least 0'):
            other.set_epoch(wrong)


def test_length_is_known_if_the_sources_is():
    assert len(refrain.echo(range(7), 2.5)) == 17
    with pytest.raises(TypeError):
        len(refrain.echo(iter(range(7)), 2))
    with pytest.raises(TypeError, match='auto'):
        len(refrain.echo(range(7), 'auto'))


# -- Positions ----------------------------------------------------------------

@pytest.mark.parametrize('kind', [Counted, Stateful])
@pytest.mark.parametrize('factor', [1, 2, 2.5, 4])
def test_every_position_restores_the_same_stream(kind, factor):
    options = {'batch': 3, 'window': 40, 'augment': pair}
    for n in 1, 30, 75:
        want = refrain.Echo(kind(n), factor, **options)
        epochs = [list(want), list(want)]
        stage = refrain.Echo(kind(n), factor, **options)
        for epoch in range(2):
            states = [stage.state_dict()]
            for _ in stage:
                states.append(stage.state_dict())
            for at, state in enumerate(states):
                again = refrain.Echo(kind(n), factor, **options,
                                     state=pickle.loads(pickle.dumps(state)))
                assert again.epoch == epoch
                assert list(again) == epochs[epoch][at:]
                if not epoch and at % 10 == 0:
                    # the new stage continues
                    assert list(again) == epochs[1]


def test_a_source_with_states_is_not_read_from_its_beginning():
    stage = refrain.Echo(Stateful(5000), 2, batch=4, window=64)
    for _ in itertools.islice(stage, 6000):
        pass
    state = stage.state_dict()
    source = Stateful(5000)
    again = refrain.Echo(source, 2, batch=4, window=64, state=state)
    assert list(itertools.islice(again, 500)) == \
        list(itertools.islice(stage, 500))
    assert 200 < source.given < 450
    # A state that was loaded but not used yet is passed on.
    third = refrain.Echo(Stateful(5000), 2, batch=4, window=64, state=state)
    assert third.state_dict() == state
    assert pickle.dumps(state) and len(state['state']) <= 256


class Adopting(Stateful):
    """A source that keeps the very dict that was loaded and changes it."""

    def __init__(self, n):
        super().__init__(n)
        self.here = {'at': 0}

    def __iter__(self):
        while self.here['at'] < self.n:
            self.here['at'] += 1
            yield self.here['at'] - 1
        self.here['at'] = 0

    def state_dict(self):
        """Return the position."""
        return self.here

    def load_state_dict(self, state):
        """Go to the position."""
        self.here = state


def test_a_state_can_be_loaded_again_and_is_not_changed():
    options = {'batch': 4, 'window': 64, 'augment': pair}
    stage = refrain.Echo(Adopting(900), 2, **options)
    for _ in itertools.islice(stage, 1000):
        pass
    state = stage.state_dict()
    kept, rest = copy.deepcopy(state), list(stage)
    assert state['source']['at'] > 0 and len(rest) == 800
    for _ in range(2):
        assert list(refrain.Echo(Adopting(900), 2, **options,
                                 state=state)) == rest
        assert state == kept


def test_a_state_can_be_loaded_while_the_stage_runs():
    stage = refrain.Echo(Stateful(200), 2, batch=4, window=64, augment=pair)
    first = list(itertools.islice(stage, 100))
    state = stage.state_dict()
    rest = list(stage)
    stage.load_state_dict(state)
    assert next(stage) == rest[0]       # even without iter()
    assert list(stage) == rest[1:]
    assert len(first) + len(rest) == 400


def test_a_state_at_the_end_begins_the_next_epoch():
    stage = refrain.Echo(range(20), 2, batch=2, window=20, augment=pair)
    list(stage)
    state = stage.state_dict()
    again = refrain.Echo(range(20), 2, batch=2, window=20, augment=pair,
                         state=state)
    assert again.epoch == 1
    want = list(stage)
    assert list(again) == want and len(want) == 40
    assert stage.epoch == 2
    with pytest.raises(StopIteration):
        next(stage)


def test_an_iterator_at_its_end_stays_there_until_iter():
    stage = refrain.Echo(range(20), 2, batch=2, window=20, augment=pair)
    it, sizes = iter(stage), []
    while len(sizes) < 9:
        step = list(itertools.islice(it, 7))
        if not step:
            break
        sizes.append(len(step))
        state = stage.state_dict()      # the state after the last serving
    assert sizes == [7, 7, 7, 7, 7, 5]
    assert next(it, None) is None and stage.epoch == 1
    want = list(refrain.Echo(range(20), 2, batch=2, window=20, augment=pair,
                             state=state))
    assert list(stage) == want and len(want) == 40
    next(iter(stage))
    stage.set_epoch(7)                  # this ends a loop over another epoch
    assert next(it, None) is None
    assert len(list(stage)) == 40 and stage.epoch == 8


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    stage = refrain.Echo(range(50), 2, batch=4, window=64, seed=3)
    it = iter(stage)
    for _ in range(10):
        next(it)
    state = stage.state_dict()
    other = refrain.Echo(range(50), 2, batch=4, window=64, seed=4)
    next(other)
    with pytest.raises(refrain.StateError, match='seed differs'):
        other.load_state_dict(state)
    assert len(list(other)) == 99
    with pytest.raises(refrain.StateError, match='damaged'):
        stage.load_state_dict(dict(state, state=state['state'][:-1] + b'x'))
    with pytest.raises(refrain.StateError, match='version 9'):
        stage.load_state_dict(dict(state, refrain_echo=9))
    with pytest.raises(refrain.StateError, match='load_state_dict'):
        stage.load_state_dict(dict(state, source={'at': 3}))
    with pytest.raises(TypeError, match='state must be'):
        stage.load_state_dict({'refrain': 1})
    assert len(list(stage)) == 90
    short = refrain.Echo(range(5), 2, batch=4, window=64, seed=3, state=state)
    with pytest.raises(refrain.Error, match='it had more'):
        next(short)


@pytest.mark.parametrize('started', [0, 37])
def test_a_stage_can_be_pickled_and_copied_where_it_is(started):
    stage = refrain.Echo(Stateful(100), 2, batch=4, window=64, augment=pair)
    for _ in range(started):
        next(stage)
    for again in (pickle.loads(pickle.dumps(stage)), copy.deepcopy(stage)):
        kept = again.state_dict()
        assert kept['state'] == stage.state_dict()['state']
        rest = list(again)
        assert len(rest) == 200 - started
        assert len(list(again)) == 200
    assert rest == list(stage)


# -- Failures -----------------------------------------------------------------

class Failing:
    """An iterator that sometimes fails before it gives an example."""

    def __init__(self, n, error, dice):
        self.left, self.error, self.dice = iter(range(n)), error, dice

    def __iter__(self):
        return self

    def __next__(self):
        if self.dice.random() < 0.3:
            raise self.error
        return next(self.left)


class FailingGenerator:
    """An iterable whose generators end when they raise an exception."""

    def __init__(self, n, error, dice):
        self.n, self.error, self.dice = n, error, dice

    def __iter__(self):
        for i in range(self.n):
            if self.dice.random() < 0.02:
                raise self.error
            yield i


class FailingStateful(Stateful):
    """The same, with states."""

    def __iter__(self):
        for i in super().__iter__():
            if random.Random(self.given).random() < 0.05:
                self.at -= 1
                raise OSError('it fails')
            yield i


def persistent(stage, *errors):
    """Return all servings of a stage, for a user who continues after
    failures."""
    served, failures = [], 0
    while True:
        try:
            served.append(next(stage))
        except StopIteration:
            return served, failures
        except errors:
            failures += 1


@pytest.mark.parametrize('kind', [Failing, FailingGenerator])
@pytest.mark.parametrize('error', [OSError, KeyboardInterrupt, MemoryError])
def test_a_source_that_fails_loses_nothing(kind, error):
    options = {'batch': 4, 'window': 40, 'augment': pair}
    stage = refrain.Echo(kind(100, error, random.Random(1)), 2, **options)
    served, failures = persistent(stage, error)
    assert served == run(range(100), 2, batch=4, window=40)
    assert failures > 2


def test_a_source_with_states_that_fails_loses_nothing():
    source = FailingStateful(100)
    served, failures = persistent(
        refrain.Echo(source, 2, batch=4, window=40), OSError)
    assert served == list(refrain.echo(range(100), 2, batch=4, window=40))
    assert failures > 2


def test_a_generator_that_cannot_begin_again_is_an_error_not_an_end():
    def once():
        yield from range(10)
        raise OSError('no more')

    stage = refrain.Echo(once(), 2, batch=2, window=20)
    with pytest.raises(OSError, match='no more'):
        list(stage)
    for _ in range(2):
        with pytest.raises(RuntimeError, match='would be lost'):
            next(stage)


def test_an_augmentation_that_fails_loses_nothing():
    dice = random.Random(2)

    def augment(example, seed):
        if dice.random() < 0.3:
            raise ValueError(example)
        return example, seed

    stage = refrain.Echo(range(100), 2, batch=4, window=40, augment=augment)
    served, failures = persistent(stage, ValueError)
    assert served == run(range(100), 2, batch=4, window=40)
    assert failures > 20


CTRL_C = '''
import itertools, os, random, signal, sys, threading, time
import refrain

class Slow:
    """A source that gives an example, and is interrupted while it does so."""
    def __init__(self):
        self.n = 0
    def __iter__(self):
        return self
    def __next__(self):
        if self.n == 3000:
            raise StopIteration
        self.n += 1
        return self.n - 1

want = list(refrain.echo(range(3000), 2, batch=4, window=40))
stop = threading.Event()
def shoot():
    while not stop.is_set():
        time.sleep(random.random() / 2000)
        os.kill(os.getpid(), signal.SIGINT)
stage = refrain.Echo(Slow(), 2, batch=4, window=40)
counts = []
interrupts = 0
def note(*_):
    global interrupts
    interrupts += 1
    # Interrupt only inside the source, where the stage would notice it.
    if sys._getframe(1).f_code is Slow.__next__.__code__:
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, note)
thread = threading.Thread(target=shoot)
thread.start()
got, lost = [], 0
try:
    while True:
        before = stage.stats()['pulled']
        given = stage._source.n
        try:
            got.append(next(stage))
        except KeyboardInterrupt:
            # The source may have counted an example that it never gave.
            stage._source.n = stage.stats()['pulled']
        except StopIteration:
            break
finally:
    stop.set()
    thread.join()
assert got == want
print(interrupts)
'''


def test_signals_in_the_source_lose_nothing(child):
    out, err, status = child(CTRL_C).end()
    assert status == 0, err
    assert int(out) > 0


def test_a_source_that_iterates_its_own_stage_is_refused():
    stages = []

    def source():
        yield 1
        next(stages[0])

    stages.append(refrain.Echo(source(), 2, batch=1, window=8))
    with pytest.raises(ValueError, match='in next'):
        list(stages[0])


@pytest.mark.parametrize('place', ['source', 'augment'])
@pytest.mark.parametrize('act', [
    lambda stage, state: stage.set_epoch(7),
    lambda stage, state: stage.load_state_dict(state)])
def test_a_stage_does_not_move_while_it_is_in_next(place, act):
    calls = []

    def move(here, example):
        calls.append(here)
        if here == place and calls.count(here) == 5:
            with pytest.raises(ValueError, match='in next'):
                act(stage, state)
        return example

    options = {'batch': 1, 'window': 8}
    state = refrain.Echo(range(20), 2, **options).state_dict()
    stage = refrain.Echo((move('source', i) for i in range(20)), 2, **options,
                         augment=lambda example: move('augment', example))
    want = list(refrain.Echo(range(20), 2, **options))
    assert list(stage) == want and stage.epoch == 1
    assert calls.count(place) >= 20


def test_a_second_thread_is_refused_while_the_source_is_asked():
    asked, go_on = threading.Event(), threading.Event()

    class Waiting:
        """A source that waits when it is asked for an example."""

        def __iter__(self):
            asked.set()
            go_on.wait()
            yield 1

    stage = refrain.Echo(Waiting(), 2, batch=1, window=8)
    served = []
    thread = threading.Thread(target=lambda: served.extend(stage))
    thread.start()
    asked.wait()
    try:
        with pytest.raises(ValueError, match='another thread'):
            next(stage)
    finally:
        go_on.set()
        thread.join()
    assert served == [1, 1]


def test_values_that_cannot_be_are_refused_by_name():
    with pytest.raises(TypeError, match='source must be an iterable'):
        refrain.echo(3)
    with pytest.raises(TypeError, match='factor'):
        refrain.echo([], [2, 3])
    with pytest.raises(TypeError, match='factor'):
        refrain.echo([], None)
    with pytest.raises(refrain.ConfigError, match='echo factor'):
        refrain.echo([], 'often')
    with pytest.raises(refrain.ConfigError, match='echo'):
        refrain.echo([], 0.5)
    with pytest.raises(TypeError, match='augment must be a function'):
        refrain.echo([], augment=3)
    with pytest.raises(refrain.ConfigError, match='need 448 or more'):
        refrain.echo([], 4, window=100)
    with pytest.raises(refrain.ConfigError, match='batch'):
        refrain.echo([], batch=0)
    with pytest.raises(refrain.ConfigError, match='rank'):
        refrain.echo([], rank=2, world=2)
    with pytest.raises(refrain.ConfigError, match='echo_max'):
        refrain.echo([], 2, echo_max=3)
    with pytest.raises(refrain.ConfigError, match='echo_log'):
        refrain.echo([], 'auto', rank=0, world=2)
    with pytest.raises(TypeError, match='windows'):
        refrain.echo([], windows=100)       # pylint: disable=E1123
    stage = refrain.echo(range(500), 4, window=100, allow_duplicates=True)
    assert len(list(stage)) == 2000 and stage.stats()['duplicates'] > 0


def test_a_stage_does_not_leak():
    gc.collect()
    source = [object() for _ in range(100)]
    before = [sys.getrefcount(x) for x in source]

    class Holder(refrain.Echo):
        """A subclass whose object is part of a reference cycle."""

    for _ in range(20):
        stage = Holder(source, 2, batch=4, window=40)
        stage.me = stage
        for _ in itertools.islice(stage, 50):
            pass
        state = stage.state_dict()
        stage.load_state_dict(state)
        next(stage)
    del stage, state, _
    gc.collect()
    assert [sys.getrefcount(x) for x in source] == before


# -- Ranks and processes ------------------------------------------------------

def test_ranks_have_orders_and_seeds_of_their_own():
    ranks = [run(range(40), 2, batch=4, window=40, rank=r, world=3)
             for r in range(3)]
    assert len({seed for rank in ranks for _, seed in rank}) == 240
    orders = [[x for x, _ in rank] for rank in ranks]
    assert orders[0] != orders[1] != orders[2]
    stage = refrain.Echo(range(40), 2, batch=4, window=40, rank=1, world=3)
    next(stage)
    with pytest.raises(refrain.StateError, match='rank differs'):
        refrain.Echo(range(40), 2, batch=4, window=40, rank=2, world=3,
                     state=stage.state_dict())


def _rest(stage, queue):
    queue.put(list(stage))


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_a_stage_goes_on_in_another_process(method):
    context = multiprocessing.get_context(method)
    stage = refrain.Echo(Stateful(100), 2, batch=4, window=64, augment=pair)
    for _ in range(30):
        next(stage)
    queue = context.SimpleQueue()
    process = context.Process(target=_rest, args=(stage, queue))
    process.start()
    rest = queue.get()
    process.join()
    assert rest == list(stage)


# -- auto ---------------------------------------------------------------------

class Spinning:
    """A source that takes a given amount of processor time."""

    def __init__(self, n, times):
        self.n, self.times = n, times

    def __len__(self):
        return self.n

    def __iter__(self):
        for i in range(self.n):
            for _ in range(self.times):
                pass
            yield i


def test_auto_measures_logs_and_its_states_and_log_repeat_the_stream():
    def work(example, seed):
        for _ in range(500):
            pass
        return example, seed

    options = {'batch': 8, 'window': 128, 'augment': work}
    stage = refrain.Echo(Spinning(3000, 1500), 'auto', **options)
    epochs, states = [], []
    for _ in range(2):
        epochs.append([])
        for serving in stage:
            if len(epochs[-1]) % 700 == 0:
                states.append((len(epochs) - 1, len(epochs[-1]),
                               stage.state_dict()))
            epochs[-1].append(serving)
    log, stats = stage.echo_log(), stage.stats()
    assert stats['echo_changes'] == len(log.splitlines()) >= 2
    assert stats['fresh'] == 6000 and stats['served'] > 6000
    again = refrain.Echo(Spinning(3000, 0), 'auto', echo_log=log, batch=8,
                         window=128, augment=pair)
    assert [list(again), list(again)] == epochs
    assert again.stats()['echo_changes'] == stats['echo_changes']
    for epoch, at, state in states[::3]:
        again = refrain.Echo(Spinning(3000, 0), 'auto', echo_log=log, batch=8,
                             window=128, augment=pair)
        again.load_state_dict(state)
        # The state is that of the serving that was in use.
        assert list(again) == epochs[epoch][at + 1:]


def test_auto_leaves_a_fast_source_alone():
    def work(example):
        for _ in range(2000):
            pass
        return example

    stage = refrain.Echo(range(4000), 'auto', batch=8, window=128,
                         augment=work)
    assert list(stage) == list(range(4000))
    assert stage.echo_log() == ''


@pytest.mark.parametrize('begin', [r'class Echo.*?def __init__', 'def echo'])
def test_stubs_have_every_keyword(begin):
    stub = (TREE / 'python/refrain/__init__.pyi').read_text()
    text = re.search(begin + r'\((.*?)\) -> ', stub, re.S)[1]
    assert set(re.findall(r'^\s+(\w+):', text, re.M)) - {'self'} == set(
        inspect.signature(refrain.Echo).parameters)


def test_documentation_is_complete():
    for name in 'Echo', 'echo':
        assert getattr(refrain, name).__doc__
    for name in dir(refrain.Echo):
        if not name.startswith('_'):
            assert getattr(refrain.Echo, name).__doc__, name
