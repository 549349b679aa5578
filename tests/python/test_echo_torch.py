# SPDX-License-Identifier: MIT
"""Tests of refrain.torch.EchoDataset, if PyTorch is installed."""

import collections
import copy
import importlib.util
import json
import pickle
import subprocess
import sys

import pytest

from conftest import PATIENCE, TREE

if importlib.util.find_spec('torch') is None:
    pytest.skip('needs PyTorch', allow_module_level=True)
torch = pytest.importorskip('torch')

import refrain.torch                            # noqa: E402 pylint: disable=C0413
from refrain.torch import EchoDataset           # noqa: E402 pylint: disable=C0413
from torch.utils.data import DataLoader         # noqa: E402 pylint: disable=C0413
from torch.utils.data import Dataset, IterableDataset, get_worker_info  # noqa: E402 pylint: disable=C0413


class Numbers(Dataset):
    """A dataset of numbers."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return i


class Stream(IterableDataset):
    """A dataset that divides itself among the workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        yield from range(first, self.n, step)


def pair(example, seed):
    """An augmentation that returns the example and the seed."""
    return example, seed


OPTIONS = {'batch': 4, 'window': 40, 'augment': pair}


def flat(loader):
    """Return all servings of an epoch, batch by batch."""
    return [list(map(tuple, batch)) for batch in loader]


def no_collation(samples):
    """Return a batch unchanged."""
    return samples


def over(data, workers=0, **more):
    """Return a DataLoader over the dataset."""
    return DataLoader(data, batch_size=4, num_workers=workers,
                      collate_fn=no_collation, **more)


def batches_are_apart(batches):
    """Check that no batch has an example twice."""
    return all(len({x for x, _ in batch}) == len(batch) for batch in batches)


@pytest.mark.filterwarnings('ignore:This DataLoader will create')
@pytest.mark.parametrize('kind', [Numbers, Stream])
@pytest.mark.parametrize('workers', [0, 1, 3])
def test_workers_serve_each_example_as_often_as_the_factor_says(kind, workers):
    batches = flat(over(EchoDataset(kind(90), 4, **OPTIONS), workers))
    served = [s for batch in batches for s in batch]
    assert collections.Counter(x for x, _ in served) == {
        i: 4 for i in range(90)}
    assert len({seed for _, seed in served}) == 360
    assert batches_are_apart(batches)


def test_a_dataset_with_numbers_is_shuffled_anew_each_epoch():
    data = EchoDataset(Numbers(60), 2, **OPTIONS)
    epochs = [flat(over(data)) for _ in range(2)]
    fresh = [list(dict.fromkeys(x for b in epoch for x, _ in b))
             for epoch in epochs]
    assert fresh[0] != fresh[1] != list(range(60))
    other = EchoDataset(Numbers(60), 2, **OPTIONS)
    other.set_epoch(1)
    assert flat(over(other)) == epochs[1]
    other.set_epoch(0)
    assert flat(over(other)) == epochs[0]
    plain = EchoDataset(Numbers(60), 1, shuffle=False, batch=4)
    assert list(plain) == list(range(60))
    third = EchoDataset(Numbers(60), 2, seed=9, **OPTIONS)
    assert flat(over(third)) != epochs[0]


@pytest.mark.parametrize('method,persistent', [
    ('fork', False), ('fork', True), ('spawn', True)])
def test_epochs_reach_the_workers(method, persistent):
    data = EchoDataset(Numbers(40), 2, **OPTIONS)
    loader = over(data, 1, multiprocessing_context=method,
                  persistent_workers=persistent)
    epochs = []
    for epoch in (0, 1, 0):
        data.set_epoch(epoch)
        epochs.append(flat(loader))
    assert epochs[0] == epochs[2] != epochs[1]
    for epoch in epochs:
        assert sum(map(len, epoch)) == 80


def test_workers_that_live_on_go_to_the_next_epoch_by_themselves():
    loader = over(EchoDataset(Numbers(40), 2, **OPTIONS), 2,
                  persistent_workers=True)
    epochs = [flat(loader) for _ in range(3)]
    seeds = {seed for epoch in epochs for batch in epoch for _, seed in batch}
    assert len(seeds) == 240


def test_length_is_that_of_a_rank():
    data = EchoDataset(Numbers(41), 2.5, **OPTIONS)
    assert len(data) == 102 and len(over(data)) == 26
    assert sum(map(len, flat(over(data)))) == 102
    assert len(EchoDataset(Numbers(41), 2, rank=1, world=2)) == 42
    with pytest.raises(TypeError):
        len(EchoDataset(Stream(41), 2))
    with pytest.raises(TypeError):
        len(EchoDataset(Numbers(41), 'auto'))


@pytest.mark.parametrize('world,n', [(2, 41), (3, 40), (7, 5)])
def test_ranks_divide_a_dataset_and_end_together(world, n):
    served, steps = collections.Counter(), []
    for rank in range(world):
        batches = flat(over(EchoDataset(Numbers(n), 2, rank=rank, world=world,
                                        **OPTIONS)))
        steps.append(len(batches))
        served.update(x for batch in batches for x, _ in batch)
    assert len(set(steps)) == 1
    assert set(served) == set(range(n))
    assert sum(served.values()) == 2 * world * -(-n // world)


# -- Positions ----------------------------------------------------------------

class Positions(IterableDataset):
    """A dataset that does what StatefulDataLoader of torchdata does in a
    worker: it gives a position with each serving, and begins at given
    positions, one for each worker."""

    def __init__(self, data, states=None):
        self.data, self.states = data, states

    def __iter__(self):
        worker = get_worker_info().id if get_worker_info() else 0
        iterator = iter(self.data)
        if self.states and self.states[worker] is not None:
            self.data.load_state_dict(self.states[worker])
            iterator = iter(self.data)
            iterator.load_state_dict(self.states[worker])
        for serving in iterator:
            yield worker, serving, copy.deepcopy(self.data.state_dict())


def by_worker(servings, workers):
    """Return the servings and positions of each worker."""
    parts = [[] for _ in range(workers)]
    for worker, serving, state in servings:
        parts[worker].append((tuple(serving), state))
    return parts


@pytest.mark.parametrize('kind,methods', [
    (Numbers, ['fork', 'spawn']), (Stream, ['fork', 'fork'])])
def test_workers_of_ranks_resume_where_each_of_them_was(kind, methods):
    seeds, workers = [], {'batch_size': None, 'num_workers': 2}
    # spawning takes seconds, so each rank uses one method
    for rank, method in enumerate(methods):
        data = EchoDataset(kind(60), 2, rank=rank, world=2, **OPTIONS)
        full = by_worker(DataLoader(Positions(data), **workers), 2)
        seeds += [s for part in full for (_, s), _ in part]
        states = [full[0][16][1], full[1][3][1]]
        again = EchoDataset(kind(60), 2, rank=rank, world=2, **OPTIONS)
        rest = by_worker(DataLoader(Positions(again, states), **workers,
                                    multiprocessing_context=method), 2)
        assert [s for s, _ in rest[0]] == [s for s, _ in full[0][17:]]
        assert [s for s, _ in rest[1]] == [s for s, _ in full[1][4:]]
        # The state of another worker is refused.
        with pytest.raises(refrain.StateError, match='rank differs'):
            list(DataLoader(Positions(again, states[::-1]), **workers))
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize('kind', [Numbers, Stream])
def test_every_position_of_one_process_restores_the_stream(kind):
    data = EchoDataset(kind(30), 2.5, **OPTIONS)
    states, want = [data.state_dict()], []
    for serving in data:
        want.append(serving)
        states.append(data.state_dict())
    later = list(data)
    for at in range(0, len(states), 4):
        again = EchoDataset(kind(30), 2.5, **OPTIONS, state=states[at])
        assert list(again) == want[at:]
        if at < 60:
            assert list(again) == later
    # A loop can count its epochs itself.
    again = EchoDataset(kind(30), 2.5, **OPTIONS)
    again.load_state_dict(states[20])
    again.set_epoch(0)
    assert list(again) == want[20:]
    again.set_epoch(1)
    assert list(again) == later


def test_a_dataset_is_pickled_where_it_is():
    data = EchoDataset(Numbers(30), 2, **OPTIONS)
    it = iter(data)
    first = [next(it) for _ in range(25)]
    again = pickle.loads(pickle.dumps(data))
    assert list(again) == list(data) and len(first) == 25
    # Workers begin anew, because their processes have no position yet.
    again = pickle.loads(pickle.dumps(data))
    assert sum(map(len, flat(over(again, 2)))) == 60


# -- auto and errors ----------------------------------------------------------

def test_auto_is_refused_in_workers_and_works_without():
    data = EchoDataset(Numbers(200), 'auto', batch=4, window=100)
    with pytest.raises(RuntimeError, match='needs num_workers=0'):
        list(over(data, 1))
    assert sorted(data) == list(range(200)) or data.stage.echo_log()
    logged = EchoDataset(Numbers(200), 'auto', batch=4, window=100,
                         echo_log='', augment=pair)
    assert sum(map(len, flat(over(logged, 2)))) == 200
    with pytest.raises(refrain.ConfigError, match='echo_log'):
        list(EchoDataset(Numbers(200), 'auto', rank=0, world=2))


def test_wrong_keywords_are_refused_at_once():
    with pytest.raises(refrain.ConfigError, match='need 1344 or more'):
        EchoDataset(Numbers(9), 4, batch=192, window=1000)
    with pytest.raises(TypeError, match='windows'):
        EchoDataset(Numbers(9), windows=1000)
    with pytest.raises(ValueError, match='epoch -1'):
        EchoDataset(Numbers(9)).set_epoch(-1)


RANK = '''
import sys, torch, refrain.torch
from torch.utils.data import DataLoader
store, rank = sys.argv[1:]

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 50
    def __getitem__(self, i):
        return i

if __name__ == '__main__':
    torch.distributed.init_process_group(
        'gloo', init_method='file://' + store, rank=int(rank), world_size=2)
    data = refrain.torch.EchoDataset(Numbers(), 2, batch=5, window=40)
    loader = DataLoader(data, batch_size=5, num_workers=2)
    print(*sorted(x for batch in loader for x in batch.tolist()))
    torch.distributed.barrier()
'''


def test_rank_and_world_are_those_of_torch_distributed(tmp_path, child,
                                                       monkeypatch):
    if not torch.distributed.is_available():
        pytest.skip('PyTorch has no torch.distributed')
    monkeypatch.setenv('GLOO_SOCKET_IFNAME', 'lo')
    team = [child(RANK, tmp_path / 'store', rank) for rank in range(2)]
    served = collections.Counter()
    for member in team:
        out, err, status = member.end()
        assert status == 0, err
        served.update(map(int, out.split()))
    assert served == {i: 2 for i in range(50)}


def test_the_experiment_with_boxes_counts_its_fresh_examples():
    script = TREE / 'experiments/boxes.py'
    if not script.exists() or importlib.util.find_spec('torchvision') is None:
        pytest.skip('needs the tree and torchvision')
    out = subprocess.run(
        [sys.executable, script, '--echo', '1', '2', '--seeds', '1', '--steps',
         '20', '--every', '20', '--tests', '40'], check=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, timeout=120 * PATIENCE)
    one, two = map(json.loads, out.stdout.decode().splitlines())
    assert one['drawn'] == 20 * 32 and one['curve'][0][1] == 20 * 32
    assert two['drawn'] == 20 * 32 // 2 + 240   # 240: the examples before the
    # first echo, half of the window less a batch
    assert 0 <= two['last'] <= 1
