# SPDX-License-Identifier: MIT
"""Crops of volumes in .npy files, compared with NumPy's slices, serving by
serving. Every value is its own position in its file, and says which file it is
in, so that each crop shows where it was cut."""

import json

import numpy as np
import pytest

import refrain
from conftest import command

CROP = (5, 7, 6)
SHAPES = ((5, 7, 6), (9, 20, 30), (40, 41, 42), (6, 300, 200), (20, 8, 70))
FILE = 1 << 24      # a value is number of the file * FILE + position
FIELDS = 'array crop=5x7x6 type=i32'


def volume(number, shape):
    return (number * FILE + np.arange(np.prod(shape))).astype(
        np.int32).reshape(shape)


@pytest.fixture(scope='module', params=[0, 2])
def scans(request, tmp_path_factory):
    """Volumes of several shapes, with and without channels."""
    top = tmp_path_factory.mktemp('scans')
    first = (request.param,) if request.param else ()
    arrays = [volume(n, first + shape) for n, shape in enumerate(SHAPES)]
    for number, array in enumerate(arrays):
        with open(top / ('%d.npy' % number), 'wb') as file:
            np.lib.format.write_array(file, array, version=(1 + number % 2, 0))
    text = FIELDS + (' channels=%d' % request.param if request.param else '')
    return top, arrays, text


def check(sample, array):
    """Compare a sample with the slice that its corners show. Returns where it
    begins, and which axes are mirrored."""
    low = int(sample.min()) % FILE
    start = np.unravel_index(low, array.shape)[-3:]
    at = tuple(slice(s, s + c) for s, c in zip(start, CROP))
    want = array[(...,) + at]
    flips = tuple(bool(f) for f in (
        np.array(np.unravel_index(int(sample.reshape(-1)[0]) % FILE,
                                  array.shape)[-3:]) > start))
    axes = [i - 3 for i in range(3) if flips[i]]
    np.testing.assert_array_equal(sample, np.flip(want, axes))
    return start, flips


def every(loader):
    """All batches of all epochs."""
    for _ in range(loader.epoch, loader.epochs):
        yield from loader


def load(scans, **more):
    more = {'batch': 2, 'epochs': 4, 'seed': 3, **more}
    return refrain.Loader(scans[0], fields=scans[2], **more)


def stream(scans, **more):
    out = []
    with load(scans, **more) as loader:
        for batch in every(loader):
            out.append((batch.indices.tolist(), batch.echoes.tolist(),
                        batch.data.copy()))
    return out


def equal(a, b):
    return len(a) == len(b) and all(
        x[:2] == y[:2] and np.array_equal(x[2], y[2]) for x, y in zip(a, b))


@pytest.mark.parametrize('echo', [1, 2.5])
def test_crops_are_slices(scans, echo):
    _, arrays, _ = scans
    seen = [set() for _ in arrays]
    flips = [set() for _ in arrays]
    with load(scans, batch=5, epochs=500 if echo == 1 else 200,
              echo=echo) as loader:
        for batch in every(loader):
            assert batch.data.dtype == np.int32
            assert batch.data.shape[1:] == arrays[0].shape[:-3] + CROP
            for index, sample in zip(batch.indices, batch['array'].values):
                start, flip = check(sample, arrays[index])
                seen[index].add(start)
                flips[index].add(flip)
    for array, starts, flip in zip(arrays, seen, flips):
        room = np.array(array.shape[-3:]) - CROP
        places = np.array(sorted(starts))
        assert (places.min(0) <= room // 4).all()
        assert (places.max(0) >= room - room // 4).all()
        assert len(flip) == 8


def test_evaluation_takes_the_centre(scans):
    _, arrays, _ = scans
    for _, _, data in stream(scans, augment='eval', in_order=True, batch=1,
                             epochs=1):
        array = arrays[int(data.min()) // FILE]
        start, flips = check(data[0], array)
        room = np.array(array.shape[-3:]) - CROP
        assert start == tuple(room // 2) and not any(flips)


def test_threads_ranks_share_and_resume(scans):
    whole = stream(scans, threads=1, echo=2)
    assert equal(whole, stream(scans, threads=4, echo=2))
    assert equal(whole, stream(scans, echo=2, share='arrays-test'))
    for step in range(0, len(whole), 3):
        with load(scans, echo=2) as loader:
            batches = every(loader)
            for _ in range(step):
                next(batches).release()
            state = loader.state_dict()
        assert equal(stream(scans, echo=2, state=state), whole[step:])
    seen = [i for rank in range(2)
            for indices, _, _ in stream(scans, rank=rank, world=2, epochs=1)
            for i in indices]
    assert sorted(seen) == list(range(len(SHAPES)))


@pytest.mark.parametrize('point', ['after', 'batch'])
def test_echoes_after_augmentation_are_equal(scans, point):
    first = {}
    for indices, echoes, data in stream(scans, echo=3, echo_point=point,
                                        epochs=1):
        for index, echo, sample in zip(indices, echoes, data):
            np.testing.assert_array_equal(first.setdefault(index, sample),
                                          sample)


def test_only_the_crop_is_read(tmp_path):
    shape, crop = (64, 512, 512), (16, 64, 64)
    np.save(tmp_path / 'a.npy', np.zeros(shape, np.float32))
    with refrain.Loader(tmp_path, fields='array crop=16x64x64', batch=1,
                        epochs=3) as loader:
        for batch in every(loader):
            batch.release()
        # Rows from the first to the last of each plane
        assert loader.stats()['bytes_read'] == 3 * crop[0] * 4 * (
            (crop[1] - 1) * shape[2] + crop[2])


@pytest.mark.parametrize('text, more, what', [
    ('array', {}, 'needs its crop'),
    ('array crop=5x7', {}, 'crop must be'),
    ('array crop=5x7x6; image', {}, 'no other fields'),
    ('array crop=5x7x6', {}, "instead of f4: see the option 'type'"),
    ('array crop=5x7x8 type=i32', {}, 'does not fit'),
    ('array crop=1x1x1 type=i32 channels=3', {}, 'channels|dimensions'),
    (FIELDS, {'echo': 'auto'}, 'echo is auto'),
    (FIELDS, {'augment': 'none'}, 'augment must be'),
    (FIELDS, {'source': 'folder'}, 'source is set'),
])
def test_what_does_not_fit_together_is_refused(tmp_path, text, more, what):
    np.save(tmp_path / 'a.npy', volume(0, CROP))
    with pytest.raises(refrain.Error, match=what):
        refrain.Loader(tmp_path, fields=text, batch=4, **more)


def test_a_file_that_was_cut_later_is_damaged(scans, tmp_path):
    for name in 'ab':
        np.save(tmp_path / (name + '.npy'), volume(0, (20, 20, 20)))
    with refrain.Loader(tmp_path, fields=FIELDS, batch=1, epochs=500,
                        max_damage=1, no_flip=True) as loader:
        with open(tmp_path / 'b.npy', 'r+b') as file:
            file.truncate(150)
        for batch in every(loader):
            check(batch.data[0], volume(0, (20, 20, 20)))
        assert loader.stats()['errors'] > 0


def test_the_command_line_has_the_same_stream(scans):
    path, _, text = scans
    out = json.loads(command('load', path, '--fields', text, '-b', 2,
                             '--epochs', 4, '--seed', 3, '--json'))
    with load(scans) as loader:
        for batch in every(loader):
            batch.release()
        assert loader.stats()['stream_hash'] == out['stream_hash']
