# SPDX-License-Identifier: MIT
"""A checker of epochs, subsets, mixes and buckets that shares no code with the
schedule: random runs on all of their ranks, resumed by as many ranks and by
others, compared with what doc/epochs.md promises. REFRAIN_TEST_CASES sets the
number of runs; seeds begin at REFRAIN_TEST_SEED."""

import collections
import fractions
import math
import os
import random

import pytest

import refrain

CASES = int(os.environ.get('REFRAIN_TEST_CASES', '40'))
SEED = int(os.environ.get('REFRAIN_TEST_SEED', '0'))
FILES, RECORD = 240, 8


class Data:
    """Records in four files of different sizes, and files of log-normal
    sizes."""

    def __init__(self, top):
        dice = random.Random(7)
        self.records = top / 'records'
        self.records.mkdir()
        self.parts = [('a', 5), ('b', 41), ('c', 17), ('d', 100)]
        for name, count in self.parts:
            (self.records / name).write_bytes(bytes(RECORD * count))
        self.sizes = [int(dice.lognormvariate(4, 0.7)) + 1
                      for _ in range(FILES)]
        files = top / 'files'
        files.mkdir()
        for i, size in enumerate(self.sizes):
            (files / ('%04d' % i)).write_bytes(bytes(size))
        self.lists = top

    def listed(self, count):
        """A list of the first `count` files."""
        path = self.lists / ('list-%d' % count)
        path.write_text(''.join('files/%04d\n' % i for i in range(count)))
        return path


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    return Data(tmp_path_factory.mktemp('epochs'))


def four_bytes(data, path, index):
    return bytes(4)


class Case:
    """One random configuration."""

    def __init__(self, seed, data):
        dice = self.dice = random.Random(seed)
        self.seed = seed
        self.kind = dice.choice(['all', 'subset', 'mix', 'bucket'])
        self.world = dice.choice([1, 1, 2, 3, 5])
        self.batch = dice.randint(1, 12)
        self.epochs = dice.randint(1, 4)
        self.echo = fractions.Fraction(1)
        self.options = {
            'seed': dice.randrange(1000), 'threads': 1, 'last': 'short',
            'memory_bytes': '16M', 'epochs': self.epochs}
        self.parts = None
        self.lengths = None
        getattr(self, '_' + self.kind)(data)
        most = self.passes or self.count
        if dice.randrange(4):
            self.epoch = dice.choice([
                dice.randint(1, most), most, dice.randint(most, 2 * most)])
            self.options['epoch_examples'] = self.epoch
        else:
            self.epoch = most
        self.total = self.epoch * self.epochs

    def _raw(self, data):
        self.dataset = data.records
        self.count = sum(count for _, count in data.parts)
        self.options.update(source='raw', record_bytes=RECORD)
        if self.dice.randrange(3) == 0:
            self.echo = self.dice.choice([
                fractions.Fraction(2), fractions.Fraction(5, 2)])
            self.options.update(echo=str(self.echo), window=64 * self.batch)

    def _all(self, data):
        self._raw(data)
        self.passes = self.count

    def _subset(self, data):
        self._raw(data)
        self.passes = self.dice.randint(1, self.count)
        self.options.update(subset=self.passes,
                            subset_seed=self.dice.randrange(9))

    def _mix(self, data):
        self._raw(data)
        self.passes = None
        self.parts, first = [], 0
        for name, count in data.parts:
            self.parts.append((name, range(first, first + count)))
            first += count
        second = self.dice.randint(1, 3)
        self.stages = {0: self._weights(), second: self._weights()}
        self.options['mix'] = '; '.join(
            ('%d: ' % begin if begin else '') + ' '.join(
                '%s=%d' % (name, weight)
                for (name, _), weight in zip(self.parts, weights) if weight)
            for begin, weights in self.stages.items())
        # Parts that no stage names are not parts of the mix.
        self.count = sum(
            len(members) for j, (_, members) in enumerate(self.parts)
            if any(weights[j] for weights in self.stages.values()))

    def _weights(self):
        weights = [self.dice.randint(0, 7) for _ in range(4)]
        weights[self.dice.randrange(4)] += 1
        return weights

    def _bucket(self, data):
        self.passes = self.count = self.dice.randint(1, FILES)
        self.dataset = data.listed(self.count)
        self.bucket = self.dice.randint(1, 6)
        self.lengths = data.sizes
        self.options.update(
            source='list', bucket=self.bucket, decode=four_bytes,
            decoded_max_bytes=4, sample_bytes=4, augment='none')

    def open(self, rank, world=None, batch=None, **more):
        return refrain.Loader(
            self.dataset, batch=batch or self.batch, rank=rank,
            world=world or self.world, **self.options, **more)


class Rank:
    """What one rank served: its steps as lists of (index, echo number), and the
    number of fresh examples after each epoch."""

    def __init__(self, loader, save_at=None):
        self.steps, self.ends, self.state = [], [], None
        with loader:
            if save_at == 0:
                self.state = loader.state_dict()
            while loader.steps_left:
                self._epoch(loader, save_at)
            self.pool = loader.stats()['pool_bytes_peak']

    def _epoch(self, loader, save_at):
        for batch in loader:
            self.steps.append(list(zip(batch.indices.tolist(),
                                       batch.echoes.tolist())))
            if batch.ends_epoch:
                self.ends.append(len(self.fresh()))
            if len(self.steps) == save_at:
                self.state = loader.state_dict()

    def fresh(self, steps=None):
        return [index for step in self.steps[:steps]
                for index, echo in step if echo == 0]


def interleave(ranks):
    """The fresh examples of all ranks in their global order."""
    fresh = [rank.fresh() for rank in ranks]
    return [one[i] for i in range(max(map(len, fresh)))
            for one in fresh if i < len(one)]


def check_passes(order, length, distinct=None):
    for begin in range(0, len(order), length):
        part = order[begin:begin + length]
        assert len(set(part)) == len(part)
        if len(part) == length and distinct is not None:
            assert set(part) == distinct


def check_choice(case, order):
    """F12: passes, whatever an epoch is; F14: one subset."""
    assert len(order) == case.total
    if case.kind == 'mix':
        check_mix(case, order)
        return
    members = set(order[:case.passes])
    if case.kind != 'subset' and case.total >= case.passes:
        assert members == set(range(case.count))
    check_passes(order, case.passes,
                 members if case.total >= case.passes else None)


def check_mix(case, order):
    """F13: proportions in each block, and passes of each part."""
    begins = sorted(begin for begin in case.stages if begin < case.epochs)
    for begin, end in zip(begins, begins[1:] + [case.epochs]):
        weights = case.stages[begin]
        stage = order[begin * case.epoch:end * case.epoch]
        size = sum(weights)
        for at in range(0, len(stage) - size + 1, size):
            block = stage[at:at + size]
            for (_, members), weight in zip(case.parts, weights):
                assert sum(i in members for i in block) == weight
    for _, members in case.parts:
        served = [i for i in order if i in members]
        check_passes(served, len(members), set(members))


def check_echoes(case, rank):
    """E2: the i-th fresh example is served floor((i+1)e) - floor(ie) times; all
    of them have come at the end of a run."""
    n = len(rank.fresh())
    assert sum(map(len, rank.steps)) == math.floor(n * case.echo)
    counts = collections.Counter(
        echo for step in rank.steps for _, echo in step)
    for echo in range(1, math.ceil(case.echo)):
        assert counts[echo] == sum(
            math.floor((i + 1) * case.echo) - math.floor(i * case.echo) > echo
            for i in range(n))


def check_epochs(case, ranks):
    """Epochs end with their last fresh example on each rank."""
    for r, rank in enumerate(ranks):
        need = [-(-((k + 1) * case.epoch - r) // case.world)
                for k in range(case.epochs)]
        assert rank.ends == sorted(rank.ends)
        if case.echo == 1:
            for end in rank.ends:
                assert any(n <= end < n + case.batch for n in need)


def check_buckets(case, order):
    """F15: in each block of a pass, global batches have separate ranges of
    lengths."""
    group = case.batch * case.world
    for first in range(0, case.total, case.passes):
        passed = order[first:first + case.passes]
        if len(passed) < case.passes:
            break
        lead = -first % group
        for at in range(lead, len(passed) - group + 1, group * case.bucket):
            block = passed[at:at + group * case.bucket]
            lengths = sorted(
                sorted(case.lengths[i] for i in block[j:j + group])
                for j in range(0, len(block) - group + 1, group))
            for one, other in zip(lengths, lengths[1:]):
                assert one[-1] <= other[0]


def check_resumed(case, ranks, save_at):
    """The same ranks go on with the same stream."""
    state = ranks[0].state
    for r in range(case.world):
        loader = case.open(r, state=state)
        assert Rank(loader).steps == ranks[r].steps[save_at:]


def check_elastic(case, ranks, order, save_at):
    """L12: other ranks serve the rest once."""
    served = [i for rank in ranks for i in rank.fresh(save_at)]
    product = case.batch * case.world
    if case.lengths:
        world = case.dice.choice(
            [w for w in range(1, product + 1) if product % w == 0 and w < 9])
        batch = product // world
    else:
        world, batch = case.dice.randint(1, 4), case.batch
    rest = interleave([
        Rank(case.open(r, world, batch, state=ranks[0].state))
        for r in range(world)])
    assert sorted(served + rest) == sorted(order)
    assert rest == order[len(order) - len(rest):]


def check_state(state):
    """F16, L12"""
    assert len(state['state'] if isinstance(state, dict) else state) <= 256


@pytest.mark.parametrize('seed', range(SEED, SEED + CASES))
def test_a_random_run_keeps_the_promises(made, seed):
    case = Case(seed, made)
    steps = math.floor(-(-case.total // case.world) * case.echo) // case.batch
    save_at = case.dice.randint(0, steps)
    ranks = [Rank(case.open(r), save_at) for r in range(case.world)]
    order = interleave(ranks)
    check_choice(case, order)
    check_epochs(case, ranks)
    for rank in ranks:
        check_echoes(case, rank)
        assert rank.pool <= 16 << 20
    if case.lengths:
        check_buckets(case, order)
    if ranks[0].state is None:
        return
    check_state(ranks[0].state)
    check_resumed(case, ranks, save_at)
    check_elastic(case, ranks, order, save_at)


def test_subsets_are_nested(made):
    options = {'source': 'raw', 'record_bytes': RECORD, 'batch': 4,
               'epochs': 1, 'subset_seed': 3, 'last': 'short'}
    before = set()
    for size in 1, 2, 40, 41, 162, 163:
        rank = Rank(refrain.Loader(made.records, subset=size, seed=size,
                                   **options))
        assert len(set(rank.fresh())) == size
        assert before <= set(rank.fresh())
        before = set(rank.fresh())
