# SPDX-License-Identifier: MIT
"""Tests of ownership: views, batches, loaders, garbage."""

import ctypes
import errno
import gc
import os
import time
import weakref

import numpy as np
import pytest

import refrain
from conftest import IMAGES, command

SANITIZER = 'REFRAIN_TEST_SANITIZER' in os.environ


def threads():
    """Return the number of threads of the process."""
    return len(os.listdir('/proc/self/task'))


def open_files():
    return len(os.listdir('/proc/self/fd'))


def names_of_files():
    """Return the names of open files, for the report of a failure."""
    names = []
    for fd in os.listdir('/proc/self/fd'):
        try:
            names.append(os.readlink('/proc/self/fd/' + fd))
        except OSError:
            pass    # this is the descriptor of the listing itself
    return sorted(names)


def fall_to(most, count=threads):
    """Wait until the count has fallen. What has ended still counts for a
    moment, or longer on a busy machine."""
    until = time.monotonic() + 20
    while count() > most and time.monotonic() < until:
        time.sleep(0.01)
    return count() <= most


class LibraryBatch(ctypes.Structure):
    """struct refrain_batch of the header."""

    _fields_ = [
        ('size', ctypes.c_size_t), ('data', ctypes.c_void_p),
        ('data_bytes', ctypes.c_size_t), ('sample_bytes', ctypes.c_size_t),
        ('numbers', ctypes.c_uint32 * 4), ('shape', ctypes.c_uint64 * 4),
        ('step', ctypes.c_uint64), ('epoch', ctypes.c_uint64),
        ('fresh', ctypes.c_uint32), ('ends_epoch', ctypes.c_uint32)] + [
            (name, ctypes.c_void_p) for name in (
                'labels', 'indices', 'substitutes', 'echoes', 'seeds',
                'status', 'crops')] + [
                    ('ended_epoch', ctypes.c_uint64),
                    ('columns', ctypes.c_void_p),
                    ('strides', ctypes.c_uint32 * 4)]


def lent_by_library(batch):
    """Return the batch that refrain_next() returned. A Batch stores the pointer
    to it after the pointer to its loader."""
    at = id(batch) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
    lent = LibraryBatch.from_address(ctypes.c_void_p.from_address(at).value)
    assert lent.size == ctypes.sizeof(LibraryBatch)
    return lent


@pytest.mark.parametrize('name', [
    'data', 'labels', 'indices', 'substitutes', 'echoes', 'seeds', 'status',
    'crops'])
def test_views_lie_where_the_library_has_the_array(data, options, name):
    with refrain.Loader(data, type='f32', **options) as loader:
        for _, batch in zip(range(3), loader):
            array = getattr(batch, name)
            arrays = [array, np.asarray(batch.view(name)),
                      np.asarray(memoryview(batch.view(name)))]
            if array.flags.writeable:
                arrays.append(np.from_dlpack(batch.view(name)))
            want = getattr(lent_by_library(batch), name)
            assert [a.ctypes.data for a in arrays] == [want] * len(arrays)
            assert {len(a) for a in arrays} == {len(batch)}


def test_a_batch_is_the_memory_of_its_data(data, options):
    with refrain.Loader(data, type='f32', **options) as loader:
        batch = next(iter(loader))
        for array in (np.asarray(batch), np.from_dlpack(batch),
                      np.asarray(memoryview(batch))):
            assert array.ctypes.data == batch.address
            assert array.shape == batch.shape and array.dtype == np.float32
        assert lent_by_library(batch).data == batch.address


def test_data_and_labels_may_be_written_to(data, options):
    with refrain.Loader(data, **options) as loader:
        batch = next(iter(loader))
        batch.data[:] = 7
        batch.labels[0] = -5
        assert (np.asarray(batch) == 7).all() and batch.labels[0] == -5
        with pytest.raises(ValueError):
            batch.indices[0] = 1
        with pytest.raises(TypeError, match='not writable'):
            ctypes.c_char.from_buffer(batch.view('seeds'))


def test_what_is_read_only_is_copied_for_old_dlpack(data, options):
    with refrain.Loader(data, **options) as loader:
        batch = next(iter(loader))
        seeds = np.from_dlpack(batch.view('seeds'))
        assert (seeds == batch.seeds).all()
        assert seeds.ctypes.data != batch.seeds.ctypes.data
        with pytest.raises(BufferError, match='read only'):
            batch.view('seeds').__dlpack__(copy=False)
        capsule = batch.view('seeds').__dlpack__(max_version=(1, 0))
        assert 'dltensor_versioned' in repr(capsule)
        assert batch.__dlpack_device__() == (1, 0)
        copy = batch.__dlpack__(copy=True)
        del capsule, copy           # no consumer took the capsules
        with pytest.raises(BufferError):
            batch.__dlpack__(dl_device=(2, 0))
        batch.release()


def test_crops_lie_in_the_library_s_memory(data, options):
    options.update(batch=8, augment='none', epochs=1)
    with refrain.Loader(data, batches_ahead=1, **options) as loader:
        it = iter(loader)
        crops = next(it).crops
        assert crops.shape == (8,) and crops.dtype.names == (
            'x', 'y', 'width', 'height', 'image_width', 'image_height',
            'flip', 'reserved')
        assert crops.itemsize == 48 and not crops.flags.writeable
        assert (crops['width'] == 48).all() and (crops['height'] == 36).all()
        boxes = crops.view('f8').reshape(-1, 6)[:, :4]
        assert boxes.tolist() == [[0, 0, 48, 36]] * 8
        assert boxes.ctypes.data == crops.ctypes.data
        kept = [crops, next(it)]
        with pytest.raises(refrain.Error, match='all 2 batches'):
            next(it)            # now only the array holds its batch
        del crops, boxes, kept
        batch = next(it)
        with pytest.raises(BufferError, match='structs'):
            np.from_dlpack(batch.view('crops'))
        assert len(np.from_dlpack(batch.crops['x'].copy())) == 8


def test_columns_are_the_fields_of_a_batch(data, options):
    with refrain.Loader(data, type='f32', **options) as loader:
        batch = next(iter(loader))
        assert batch.keys() == ('image', 'class')
        for name, attribute in (('image', 'data'), ('class', 'labels')):
            column, array = batch[name], getattr(batch, attribute)
            assert (column.name, column.kind) == (name, name)
            assert column.offsets is None and column.lengths is None
            views = (column.values, np.asarray(column), np.from_dlpack(column),
                     np.asarray(batch.view(name)))
            for view in views:
                assert view.ctypes.data == array.ctypes.data
                assert view.shape == array.shape and view.dtype == array.dtype
            assert column.values.flags.writeable
        for wrong in ('boxes', 'labels', 0):
            with pytest.raises(KeyError, match='image'):
                batch[wrong]
        assert dict(batch)['class'].values.tolist() == batch.labels.tolist()
        assert repr(column).startswith("<refrain.Column 'class' of 16 ")
        with pytest.raises(TypeError):
            iter(batch)
        del array, view, views
        batch.release()
        for call in (lambda: column.values, lambda: column.name, batch.keys,
                     lambda: batch['image'], lambda: memoryview(column)):
            with pytest.raises(ValueError, match='released'):
                call()


def test_samples_that_are_not_images_are_an_array(data, options):
    def decode(encoded, path, index):
        return bytes([index % 256]) * 16

    with refrain.Loader(data, decode=decode, sample_bytes=16,
                        decoded_max_bytes=16, **options) as loader:
        batch = next(iter(loader))
        assert batch.keys() == ('array', 'class')
        assert batch['array'].kind == 'array'
        assert (batch['array'].values == batch.data).all()
        assert batch['array'].values.shape == (16, 16)


def test_a_batch_goes_back_with_its_last_view(data, options):
    with refrain.Loader(data, batches_ahead=2, **options) as loader:
        it = iter(loader)
        views = [next(it).view('data'), np.asarray(next(it)),
                 memoryview(next(it))]
        for kept in range(3):
            with pytest.raises(refrain.Error, match='all 3 batches') as e:
                next(it)
            assert e.value.errno == errno.EBUSY
            views[kept] = None
            views[kept] = next(it).labels
        with pytest.raises(refrain.Error):
            next(it)


def test_release_gives_back_at_once_but_not_under_a_view(data, options):
    with refrain.Loader(data, batches_ahead=1, **options) as loader:
        it = iter(loader)
        batches = []
        for _ in range(10):
            batches.append(next(it))
            array = batches[-1].data
            with pytest.raises(BufferError, match='1 views'):
                batches[-1].release()
            del array
            batches[-1].release()
            batches[-1].release()
        with pytest.raises(ValueError, match='released'):
            batches[0].data
        with pytest.raises(ValueError, match='released'):
            len(batches[0])
        with pytest.raises(ValueError):
            memoryview(batches[0])


def test_a_batch_outlives_its_loader(data, options):
    loader = refrain.Loader(data, **options)
    batch = next(iter(loader))
    want = batch.data.copy()
    gone = weakref.ref(loader)
    before = threads()
    del loader
    gc.collect()
    assert gone() is None and fall_to(before - 1)
    assert (batch.data == want).all()
    data_alone = batch.data
    del batch
    assert (data_alone == want).all()


def test_garbage_in_a_cycle_is_collected(data, options):
    before = threads()

    class Holder:
        """An object that refers to its loader, while the loader refers to
        it."""

        def targets(self, indices):
            """Return targets; this test never asks for them."""
            return indices

        def decode(self, data, path, index):
            """Return some bytes."""
            return bytes(16)

    holder = Holder()
    holder.loader = refrain.Loader(
        data, targets=holder.targets, decode=holder.decode, sample_bytes=16,
        decoded_max_bytes=16, batch=8)
    holder.batch = next(iter(holder.loader))
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None
    assert fall_to(before)


def test_batches_in_garbage_are_found_when_all_are_lent(data, options):
    with refrain.Loader(data, batches_ahead=1, **options) as loader:
        usual = gc.get_threshold()
        gc.set_threshold(0)
        try:
            steps = 0
            for batch in loader:
                cycle = [batch]
                cycle.append(cycle)
                steps += 1
                if steps == 6:
                    break
        finally:
            gc.set_threshold(*usual)
        assert steps == 6


def rss():
    """Return the number of resident bytes."""
    with open('/proc/self/statm', encoding='ascii') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGESIZE')


@pytest.mark.skipif(SANITIZER, reason='it keeps what was freed')
def test_memory_is_flat(data, options):
    """Set REFRAIN_TEST_BATCHES=1000000 for a long run."""
    batches = int(os.environ.get('REFRAIN_TEST_BATCHES', 12000))
    epochs = -(-batches // IMAGES)
    options.update(batch=1, size=8, epochs=epochs, in_order=True)
    with refrain.Loader(data, **options) as loader:
        low, steps = None, 0
        for epoch in range(epochs):
            for batch in loader:
                batch.data, batch.labels, batch.crops, np.from_dlpack(batch)
                batch.state_dict()
                steps += 1
            if epoch == 10:
                low = rss()
        print('%d batches: %+d KiB' % (steps, (rss() - low) // 1024))
        assert steps >= batches and rss() - low < 1 << 20


def test_opening_and_closing_leaves_nothing(data, options):
    def some():
        for _ in range(5):
            with refrain.Loader(data, **options) as loader:
                next(iter(loader))
            with pytest.raises(refrain.Error):
                refrain.Loader(data, **dict(options, batch=0))

    some()
    before, files, names = threads(), open_files(), names_of_files()
    some()
    gc.collect()
    assert fall_to(before)
    assert fall_to(files, open_files), (names, names_of_files())


def test_only_a_loader_makes_batches_and_views():
    for kind in (refrain.Batch, refrain.Column, refrain.View):
        with pytest.raises(TypeError, match='comes from a Loader'):
            kind()
        with pytest.raises(TypeError):
            object.__new__(kind)


def test_a_loader_that_is_closed_says_so(data, options):
    loader = refrain.Loader(data, **options)
    it = iter(loader)
    next(it)
    assert loader.close() == 0 and loader.close() == 0
    for call in (lambda: next(it), lambda: iter(loader), loader.stats,
                 loader.state_dict, lambda: loader.path(0), loader.echo_log,
                 lambda: loader.examples, lambda: len(loader)):
        with pytest.raises(refrain.ClosedError, match='closed'):
            call()
    with pytest.raises(TypeError, match='pickled'):
        __import__('pickle').dumps(loader)


def rereads(data, memory_bytes):
    """Return two statistics of a run with images that are large for the
    memory."""
    with refrain.Loader(data, batch=16, epochs=2, echo=2, size=32, threads=2,
                        memory_bytes=memory_bytes) as loader:
        for _ in range(2):
            for _ in loader:
                pass
        stats = loader.stats()
    return stats['rereads'], stats['memory_wanted_bytes']


def test_statistics_name_the_memory_that_avoids_rereads(tmp_path):
    data = str(tmp_path / 'large')
    command('make-dataset', '--classes', '2', '--images', '200', '--size',
            '640x480', data)
    again, wanted = rereads(data, '8M')
    assert again > 0 and wanted > 8 << 20
    now, _ = rereads(data, wanted)
    assert now <= again / 50
    assert rereads(data, '512M') == (0, 0)
