# SPDX-License-Identifier: MIT
"""Tests of PNGs of every kind in a folder, compared with the pixels that PIL
decodes."""

import errno
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import refrain

WIDTH, HEIGHT = 37, 29
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
KINDS = [(color, depth, passes)
         for color, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)),
                               (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16)))
         for depth in depths for passes in (False, True)]
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
         (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind, data):
    body = kind + data
    return struct.pack('>I', len(data)) + body + \
        struct.pack('>I', zlib.crc32(body))


def rows_of(samples, depth):
    """Pack the rows, each after the number of its filter: none."""
    rows = samples.reshape(len(samples), -1)
    if depth == 16:
        packed = rows.astype('>u2').view(np.uint8)
    elif depth == 8:
        packed = rows.astype(np.uint8)
    else:
        bits = rows[..., None] >> np.arange(depth - 1, -1, -1) & 1
        packed = np.packbits(bits.reshape(len(rows), -1).astype(np.uint8),
                             axis=1)
    return b''.join(b'\0' + row.tobytes() for row in packed)


def write_png(path, color, depth, passes, seed, colours=None):
    """Write a PNG of random samples. Of 16-bit samples, many are small."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(0, 1 << depth, (HEIGHT, WIDTH, CHANNELS[color]))
    if depth == 16:
        samples[::2] %= 512
    parts = ADAM7 if passes else ((0, 0, 1, 1),)
    raw = b''.join(rows_of(samples[y::dy, x::dx], depth)
                   for x, y, dx, dy in parts)
    data = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack(
        '>IIBBBBB', WIDTH, HEIGHT, depth, color, 0, 0, passes))
    if color == 3:
        data += chunk(b'PLTE', rng.bytes(3 * (colours or 1 << depth)))
        data += chunk(b'tRNS', b'\0\x80')
    data += chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b'')
    path.write_bytes(data)


def load(top, **more):
    """Return [(path, pixels)] of every example, at the image's own size."""
    options = {'batch': 4, 'width': WIDTH, 'height': HEIGHT, 'augment': 'none',
               'in_order': True, 'threads': 2, 'layout': 'nhwc',
               'last': 'short', 'epochs': 1, **more}
    found = []
    with refrain.Loader(top, **options) as loader:
        for batch in loader:
            assert not batch.status.any()
            found += [(loader.path(i), pixels.copy())
                      for i, pixels in zip(batch.indices, batch.data)]
    return found


@pytest.fixture
def pngs(tmp_path):
    """A folder with a PNG of each kind."""
    top = tmp_path / 'pngs' / 'a'
    top.mkdir(parents=True)
    for i, kind in enumerate(KINDS):
        write_png(top / ('%d-%d-%d.png' % kind), *kind, seed=i)
    write_png(top / 'few.PNG', 3, 8, False, 99, colours=7)
    return top.parent


def test_pixels_are_those_of_pil(pngs):
    image = pytest.importorskip('PIL.Image')
    found = load(pngs)
    assert len(found) == len(KINDS) + 1
    for path, pixels in found:
        with image.open(pngs / path) as png:
            want = np.asarray(png.convert('RGB'))
        np.testing.assert_array_equal(pixels, want, err_msg=path)


def test_fit_keeps_the_aspect_and_fills_with_the_mean(pngs):
    image = pytest.importorskip('PIL.Image')
    mean = np.rint(255 * np.array([0.485, 0.456, 0.406]))
    for path, pixels in load(pngs, width=64, height=64, augment='fit'):
        with image.open(pngs / path) as png:
            want = png.convert('RGB').resize((64, 50), image.BILINEAR)
        inner = pixels[7:57].astype(int)
        assert abs(inner - np.asarray(want)).max() <= 1, path
        assert (pixels[:7] == mean).all() and (pixels[57:] == mean).all()


def test_pngs_and_jpegs_are_examples_of_one_folder(data, tmp_path, pngs):
    for i, path in enumerate(sorted(data.glob('*/*.jpg'))[:5]):
        (pngs / 'a' / ('%d.jpg' % i)).write_bytes(path.read_bytes())
    names = [path.split('/')[1] for path, _ in load(pngs)]
    assert names == sorted(os.listdir(pngs / 'a'))


@pytest.mark.parametrize('point', ['before', 'after', 'batch'])
def test_echoes_of_a_png_are_those_of_its_crops(pngs, point):
    """Check this with other numbers of threads and little memory, too."""
    options = {'augment': 'train', 'echo': 3, 'seed': 4, 'in_order': False,
               'echo_point': point, 'window': 16,
               'allow_duplicates': True}
    one = load(pngs, threads=1, **options)
    two = load(pngs, threads=3, memory_bytes='24M', **options)
    assert len(one) > 2 * len(KINDS)
    assert [path for path, _ in one] == [path for path, _ in two]
    for (_, a), (_, b) in zip(one, two):
        np.testing.assert_array_equal(a, b)


def test_a_png_that_is_damaged_is_a_damaged_example(pngs):
    bad = pngs / 'a' / 'few.PNG'
    data = bytearray(bad.read_bytes())
    data[-20] ^= 1
    bad.write_bytes(data)
    with refrain.Loader(pngs, batch=4, size=16, max_damage=1) as loader:
        for _ in loader:
            pass
        stats = loader.stats()
    assert (stats['errors'], stats['errors_damaged']) == (1, 1)
    with pytest.raises(refrain.Error) as failure:
        with refrain.Loader(pngs, batch=4, size=16, policy='fail') as loader:
            for _ in loader:
                pass
    assert 'few.PNG' in str(failure.value) and 'CRC' in str(failure.value)


WITHOUT = '''
import refrain, sys
try:
    for batch in refrain.Loader(sys.argv[1], batch=4, size=16):
        pass
except refrain.Error as e:
    print(e.errno, e)
'''


def test_without_libspng_the_run_ends_and_says_so(pngs, tmp_path):
    (tmp_path / 'libspng.so.0').write_text('not a library')
    path = '%s:%s' % (tmp_path, os.environ.get('LD_LIBRARY_PATH', ''))
    out = subprocess.run(
        [sys.executable, '-c', WITHOUT, pngs], check=True, text=True,
        env={**os.environ, 'LD_LIBRARY_PATH': path},
        stdout=subprocess.PIPE).stdout
    assert out.startswith(str(errno.ELIBACC))
    assert 'install libspng' in out
