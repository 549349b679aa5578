# SPDX-License-Identifier: MIT
"""Tests of refrain.torch, if PyTorch is installed."""

import importlib.util
import pickle

import numpy as np
import pytest

if importlib.util.find_spec('torch') is None:
    pytest.skip('needs PyTorch', allow_module_level=True)
torch = pytest.importorskip('torch')

import refrain.torch            # noqa: E402 pylint: disable=C0413
from conftest import IMAGES     # noqa: E402 pylint: disable=C0413


@pytest.fixture
def some(options):
    """The keywords for tensors of floats."""
    return dict(options, type='f32', layout='nchw')


def test_tensors_lie_where_the_library_has_the_batch(data, some):
    with refrain.Loader(data, **some) as loader:
        it = iter(loader)
        for _ in range(8):
            batch = next(it)
            images = torch.from_dlpack(batch)
            assert images.data_ptr() == batch.address
            assert images.shape == (16, 3, 32, 32)
            assert images.dtype == torch.float32
            labels = refrain.torch.tensor(batch, 'labels')
            assert labels.tolist() == batch.labels.tolist()
            images += 1
            del batch, labels


def test_dataset_is_what_the_loader_gives(data, some):
    with refrain.Loader(data, epochs=2, **some) as loader:
        want = [[(b.data.copy(), b.labels.copy()) for b in loader]
                for _ in range(2)]
    ours = refrain.torch.IterableDataset(data, epochs=2, **some)
    ours = pickle.loads(pickle.dumps(ours))
    assert len(ours) == len(want[0])
    for epoch in range(2):
        ours.set_epoch(epoch)
        n = 0
        for (images, labels), (a, b) in zip(ours, want[epoch]):
            assert (images.numpy() == a).all() and (labels.numpy() == b).all()
            n += 1
        assert n == len(want[epoch])
        del images, labels
    with pytest.raises(TypeError, match='pickled'):
        pickle.dumps(ours)
    ours.close()


def test_a_data_loader_may_stand_between_but_without_workers(data, some):
    ours = refrain.torch.IterableDataset(data, **some)
    loader = torch.utils.data.DataLoader(ours, batch_size=None)
    seen = sum(len(labels) for images, labels in loader)
    assert seen >= IMAGES
    ours.close()
    loader = torch.utils.data.DataLoader(ours, batch_size=None, num_workers=1)
    with pytest.raises(RuntimeError, match='batch_size=None, num_workers=0'):
        next(iter(loader))


def test_position_is_saved_in_mid_epoch(data, some):
    ours = refrain.torch.IterableDataset(data, epochs=1, echo=2, **some)
    sums = []
    for images, labels in ours:
        sums.append(float(images.sum()))
        if len(sums) == 5:
            state = ours.state_dict()
    again = refrain.torch.IterableDataset(data, epochs=1, echo=2, **some)
    again.load_state_dict(state)
    assert [float(images.sum()) for images, _ in again] == sums[5:]
    # this works when the loader is open, too
    again.load_state_dict(state)
    assert len([1 for _ in again]) == len(sums) - 5
    ours.close()
    again.close()


@pytest.mark.parametrize('world,examples,batch', [(7, 300, 50), (3, 500, 83),
                                                  (2, 83, 31)])
def test_ranks_of_unequal_shares_end_at_the_same_step(listed, options, world,
                                                      examples, batch):
    options.update(batch=batch)
    dataset, ends, seen = listed(examples), [], set()
    for rank in range(world):
        ours = refrain.torch.IterableDataset(dataset, rank=rank, world=world,
                                             epochs=3, **options)
        steps = []
        for _ in range(3):
            steps.append(0)
            for batch in ours.loader:
                steps[-1] += 1
                seen |= set(batch.indices.tolist())
                del batch
        ends.append(steps)
        ours.close()
    assert ends == [ends[0]] * world and len(seen) == examples


RANK = '''
import sys, torch, refrain.torch
data, store, rank = sys.argv[1:]
torch.distributed.init_process_group(
    'gloo', init_method='file://' + store, rank=int(rank), world_size=2)
print(*refrain.torch.rank_and_world())
ours = refrain.torch.IterableDataset(data, batch=83, size=8, seed=5, epochs=2)
for _ in range(2):
    print(sum(len(labels) for images, labels in ours), ours.loader.step)
ours.close()
torch.distributed.barrier()
'''


def test_rank_and_world_are_those_of_torch_distributed(data, tmp_path, child,
                                                       monkeypatch):
    assert refrain.torch.rank_and_world() == (0, 1)
    if not torch.distributed.is_available():
        pytest.skip('PyTorch has no torch.distributed')
    monkeypatch.setenv('GLOO_SOCKET_IFNAME', 'lo')
    team = [child(RANK, data, tmp_path / 'store', rank) for rank in range(2)]
    said = []
    for member in team:
        out, err, status = member.end()
        assert status == 0, err
        said.append(out.splitlines())
    assert [lines[0] for lines in said] == ['0 2', '1 2']
    # both have the same steps and examples
    assert said[0][1:] == said[1][1:]
    assert sum(int(line.split()[0]) for line in said[0][1:]) == IMAGES


def test_evaluation_has_each_example_once_and_a_mask(data, options):
    # evaluation does not drop the last batch
    options.update(batch=20, last='drop')
    labels, steps = [], []
    for rank in range(7):
        ours = refrain.torch.EvalDataset(data, rank=rank, world=7, **options)
        for again in range(2):
            n = 0
            for images, targets, mask in ours:
                assert mask.shape == targets.shape == images.shape[:1]
                n += 1
                if not again:
                    labels += targets[mask].tolist()
        steps.append(n)
    assert len(labels) == IMAGES and len(set(steps)) == 1
    assert np.bincount(labels).tolist() == [100, 100, 100]


def test_targets_become_tensors(data, options):
    values = np.linspace(0, 1, IMAGES)
    ours = refrain.torch.IterableDataset(data, targets=values, **options)
    images, targets = next(iter(ours))
    assert targets.dtype == torch.float64 and targets.shape == (16,)
    ours.close()


@pytest.mark.parametrize('more', [{}, {'device': 'cpu'}])
def test_tensors_of_a_share_are_copies_that_may_be_written_to(data, some,
                                                              more):
    some.update(share='torch', epochs=1)
    with refrain.Loader(data, **some) as loader:
        batch = next(iter(loader))
        images = torch.from_dlpack(batch)
        assert images.data_ptr() != batch.address
        assert (images.numpy() == batch.data).all()
        images += 1
        lent = refrain.torch.tensor(batch, copy=False)
        assert lent.data_ptr() == batch.address
        del batch, lent
    ours = refrain.torch.IterableDataset(data, **some, **more)
    held = []
    for images, labels in ours:     # keep more batches than the loader lends
        images += 1
        labels += 1
        held.append(images)
    assert len(held) == len(ours) == 19
    ours.close()
