# SPDX-License-Identifier: MIT
"""Tests of batches that are copied to a GPU, with a stand-in for PyTorch whose
streams run late."""

import errno
import threading

import numpy as np
import pytest

import fake_torch
import refrain


@pytest.fixture
def both(monkeypatch):
    """Return (torch, refrain.torch)."""
    return fake_torch.install(monkeypatch)


@pytest.fixture
def images(data, options):
    """Return the data and labels of the batches that `options` make."""
    options.update(batches_ahead=1, epochs=1)
    with refrain.Loader(data, **options) as loader:
        return [(b.data.copy(), b.labels.copy()) for b in loader]


def test_a_batch_goes_back_after_the_event_behind_its_copy(
        data, options, both, images):
    torch, ours = both
    stream = torch.cuda.streams[1]
    copies = []
    with refrain.Loader(data, **options) as loader:
        it = iter(loader)
        for _ in range(2):
            copies += ours.to_device([ours.tensor(next(it))], 'cuda:1')
        assert not torch.cuda.streams[0].waiting
        with pytest.raises(refrain.Error) as e:
            next(it)            # neither batch has been read yet
        assert e.value.errno == errno.EBUSY
        stream.run(1)           # this runs the copy, but not the event after it
        ours.in_flight.sweep()
        with pytest.raises(refrain.Error):
            next(it)
        stream.run(1)
        ours.in_flight.sweep()
        copies += ours.to_device([ours.tensor(next(it))], 'cuda:1')
        stream.run()
        ours.in_flight.sweep()
        assert len(ours.in_flight) == 0
    for copy, (want, _) in zip(copies, images):
        assert (copy.array == want).all()


def test_copies_wait_for_those_far_behind_them(data, options, both, images):
    torch, ours = both
    copies = []
    with refrain.Loader(data, **options) as loader:
        for batch in loader:
            tensors = [ours.tensor(batch), ours.tensor(batch, 'labels')]
            copies.append(ours.to_device(tensors, 'cuda', ahead=0))
            del batch, tensors
            assert len(ours.in_flight) == 1
    torch.cuda.streams[0].run()
    assert len(copies) == len(images)
    for got, want in zip(copies, images):
        assert (got[0].array == want[0]).all()
        assert (got[1].array == want[1]).all()


def test_a_dataset_copies_by_way_of_pinned_memory(data, options, both, images):
    torch, ours = both
    stream = torch.cuda.streams[1]
    dataset = ours.IterableDataset(data, device='cuda:1', **options)
    pinned, copies = [], []
    make = torch.empty

    def empty(shape, dtype, pin_memory):
        pinned.append(pin_memory)
        return make(shape, dtype, pin_memory)

    torch.empty = empty
    for copy, targets in dataset:
        copies.append((copy, targets))
        assert 0 < len(ours.in_flight) <= 3
    assert stream.waiting and not torch.cuda.streams[0].waiting
    stream.run()
    ours.in_flight.sweep()
    assert len(ours.in_flight) == 0
    assert len(copies) == len(images) and len(pinned) >= len(images)
    assert all(pinned)
    for (copy, targets), (want, labels) in zip(copies, images):
        assert (copy.array == want).all() and (targets.array == labels).all()
    dataset.close()


@pytest.mark.parametrize('device', ['cpu', 'mps'])
def test_copies_to_other_devices_are_complete(data, options, both, images,
                                              device):
    _, ours = both
    dataset = ours.IterableDataset(data, device=device, **options)
    for (copy, _), (want, _) in zip(dataset, images):
        assert (copy.array == want).all()
        del copy
    assert len(ours.in_flight) == 0
    dataset.close()


def test_threads_share_what_is_in_flight(both):
    _, ours = both
    flight, gone = ours._InFlight(), []

    class Owner:
        """An owner that was dropped too early if its event has not happened."""

        def __init__(self, event):
            self.event = event

        def __del__(self):
            gone.append(self.event.query())

    def run():
        for _ in range(200):
            stream, event = fake_torch.Stream(), fake_torch.Event()
            event.record(stream)
            flight.add(event, Owner(event), most=2)
            stream.run()

    team = [threading.Thread(target=run) for _ in range(4)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    flight.sweep()
    assert len(flight) == 0 and gone == [True] * 800
