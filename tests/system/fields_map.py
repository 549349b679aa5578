# SPDX-License-Identifier: MIT
"""Maps boxes, points and masks through random views with NumPy, and compares
the results with those of the program map_rows, to the bit.

usage: fields_map.py MAP_ROWS [SEED]
"""

import struct
import subprocess
import sys

import numpy as np

FIELDS = [
    ('boxes', 2000),
    ('boxes max=2 min_side=0', 1000),
    ('boxes max=3 keep=visible min_visible=0.3 crowd', 2000),
    ('boxes keep=visible min_side=4', 1000),
    ('points', 1000),
    ('points max=2 points=5 pairs=1-2,3-5', 1000),
    ('mask', 1000),
    ('mask type=u16 fill=65535', 500),
    ('mask type=i32 fill=0', 500),
]
BOX = np.dtype([('at', np.float32, 4), ('label', np.int32),
                ('flags', np.uint32)])
TYPES = {'u8': np.uint8, 'u16': np.uint16, 'i32': np.int32}


def draw_view(rng):
    """Draw a crop like those of TRAIN (whole pixels) or EVAL (fractions), or
    one that is larger than the image."""
    image = rng.integers(1, 200, 2)
    sample = rng.integers(1, 40, 2)
    size = np.maximum(1, rng.integers(1, image + 1))
    at = rng.integers(0, image - size + 1).astype(float)
    size = size.astype(float)
    kind = rng.integers(4)
    if kind == 1:
        at, size = at + 0.25, size - 0.5 * rng.random()
    if kind == 2:
        at, size = at - rng.integers(0, 50, 2), size + rng.integers(0, 99, 2)
    return {'at': at, 'size': size, 'image': image, 'sample': sample,
            'flip': bool(rng.integers(2))}


def pack_view(v):
    return struct.pack('=4d5I', *v['at'], *v['size'], *v['image'],
                       *v['sample'], v['flip'])


def to_sample(v, points):
    """Map points of the image, an (n, 2) array, to the sample, before the
    flip."""
    mapped = (points - v['at']) * v['sample'] / v['size']
    return np.clip(mapped, 0, v['sample'])


def inside(v, points):
    return np.all((points >= v['at']) & (points < v['at'] + v['size']), axis=1)


# -- Boxes --------------------------------------------------------------------

def draw_boxes(rng, v):
    count = int(rng.choice([0, 1, 2, 5, 12]))
    rows = np.zeros(count, BOX)
    corners = rng.uniform(-5, 1, (2, count, 2)) + \
        rng.random((2, count, 2)) * (v['image'] + 5)
    # coordinates are often on edges of pixels and of the crop
    if rng.integers(3) == 0:
        corners = np.rint(corners)
    low, high = np.minimum(*corners), np.maximum(*corners)
    if rng.integers(4) == 0:
        high = low + rng.integers(0, 3, (count, 2))
    rows['at'] = np.concatenate((low, high), axis=1)
    rows['label'] = rng.integers(0, 80, count)
    rows['flags'] = rng.random(count) < 0.1
    return rows


def want_boxes(v, rows, options):
    at = rows['at'].astype(np.float64)
    low, high = at[:, :2], at[:, 2:]
    first = np.maximum(v['at'], 0)
    last = np.minimum(v['at'] + v['size'], v['image'])
    clipped = [np.minimum(np.maximum(p, first), last) for p in (low, high)]
    if options.get('keep') == 'visible':
        seen = np.prod(clipped[1] - clipped[0], axis=1)
        share = float(options.get('min_visible', 0))
        keep = (seen > 0) & (seen >= share * np.prod(high - low, axis=1))
    else:
        keep = inside(v, (low + high) / 2)
    if 'crowd' not in options:
        keep &= rows['flags'] == 0
    a, b = to_sample(v, clipped[0]), to_sample(v, clipped[1])
    keep &= np.all((b > a) & (b - a >= float(options.get('min_side', 1))),
                   axis=1)
    if v['flip']:
        a[:, 0], b[:, 0] = v['sample'][0] - b[:, 0], v['sample'][0] - a[:, 0]
    which = np.flatnonzero(keep)
    most = int(options.get('max', 100))
    out = np.concatenate((a, b), axis=1).astype(np.float32)
    return (out[which[:most]], rows['label'][which[:most]],
            which[:most].astype(np.int32), max(0, len(which) - most))


def read_boxes(out, options):
    count, cut = struct.unpack('=2I', out.read(8))
    return (np.frombuffer(out.read(16 * count), np.float32).reshape(-1, 4),
            np.frombuffer(out.read(4 * count), np.int32),
            np.frombuffer(out.read(4 * count), np.int32), cut)


def pack_rows(rows):
    return struct.pack('=I', len(rows)) + rows.tobytes()


# -- Points -------------------------------------------------------------------

def draw_points(rng, v, options):
    n = int(options.get('points', 17))
    count = int(rng.choice([0, 1, 3, 8]))
    rows = np.zeros((count, n, 3), np.float32)
    rows[..., :2] = rng.uniform(-5, v['image'] + 5, (count, n, 2))
    rows[..., 2] = rng.integers(0, 3, (count, n))
    return rows


def want_points(v, rows, options):
    n = int(options.get('points', 17))
    twin = np.arange(n)
    for pair in filter(None, options.get('pairs', '').split(',')):
        a, b = (int(i) - 1 for i in pair.split('-'))
        twin[a], twin[b] = b, a
    out, which = [], []
    for i, row in enumerate(rows):
        points = row[:, :2].astype(np.float64)
        seen = (row[:, 2] > 0) & inside(v, points)
        mapped = np.zeros((n, 3), np.float32)
        xy = to_sample(v, points)
        if v['flip']:
            xy[:, 0] = v['sample'][0] - xy[:, 0]
        mapped[seen, :2] = xy[seen]
        mapped[seen, 2] = row[seen, 2]
        if v['flip']:
            mapped = mapped[twin]
        if seen.any():
            out.append(mapped)
            which.append(i)
    most = int(options.get('max', 32))
    return (np.array(out[:most], np.float32).reshape(-1, n, 3),
            np.array(which[:most], np.int32), max(0, len(which) - most))


def read_points(out, options):
    n = int(options.get('points', 17))
    count, cut = struct.unpack('=2I', out.read(8))
    return (np.frombuffer(out.read(12 * n * count),
                          np.float32).reshape(-1, n, 3),
            np.frombuffer(out.read(4 * count), np.int32), cut)


# -- Masks --------------------------------------------------------------------

def draw_mask(rng, v, options):
    """Draw the region that the crop needs, and sometimes a larger one."""
    small = options.get('type', 'u8') == 'u8'
    whole = rng.integers(0, 256 if small else 60000,
                         v['image'][::-1]).astype(np.uint16)
    first = np.clip(np.floor(v['at']), 0, v['image'] - 1).astype(int)
    last = np.clip(np.ceil(v['at'] + v['size']), first + 1,
                   v['image']).astype(int)
    if rng.integers(2):
        first = rng.integers(0, first + 1)
    region = whole[first[1]:last[1], first[0]:last[0]]
    if small and rng.integers(2):
        region = region.astype(np.uint8)
    return whole, first, region


def pack_mask(mask):
    _, first, region = mask
    return struct.pack('=5I', region.dtype.itemsize, *first,
                       *region.shape[::-1]) + region.tobytes()


def want_mask(v, mask, options):
    whole = mask[0]
    kind = TYPES[options.get('type', 'u8')]
    x, y = (np.floor(v['at'][i] + (np.arange(v['sample'][i]) + 0.5) *
                     v['size'][i] / v['sample'][i]).astype(int)
            for i in range(2))
    if v['flip']:
        x = x[::-1]
    y, x = np.meshgrid(y, x, indexing='ij')
    there = (x >= 0) & (y >= 0) & (x < v['image'][0]) & (y < v['image'][1])
    out = np.full(x.shape, int(options.get('fill', 255)), kind)
    out[there] = whole[y[there], x[there]]
    return 0, out


def read_mask(out, options, v):
    kind = TYPES[options.get('type', 'u8')]
    rc, = struct.unpack('=i', out.read(4))
    if rc < 0:
        return rc, None
    shape = tuple(v['sample'][::-1])
    data = out.read(int(np.prod(shape)) * kind().itemsize)
    return 0, np.frombuffer(data, kind).reshape(shape)


# -- All of them --------------------------------------------------------------

def compare(program, text, views, rng):
    kind, *words = text.split()
    options = dict(word.split('=') if '=' in word else (word, '')
                   for word in words)
    cases, data = [], b''
    for _ in range(views):
        v = draw_view(rng)
        if kind == 'boxes':
            rows = draw_boxes(rng, v)
            data += pack_view(v) + pack_rows(rows)
        elif kind == 'points':
            rows = draw_points(rng, v, options)
            data += pack_view(v) + pack_rows(rows)
        else:
            rows = draw_mask(rng, v, options)
            data += pack_view(v) + pack_mask(rows)
        cases.append((v, rows))
    with subprocess.Popen([program, text], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as run:
        out = _Reader(run.communicate(data)[0])
        assert run.returncode == 0
    left = []
    for v, rows in cases:
        if kind == 'boxes':
            got = read_boxes(out, options)
            want = want_boxes(v, rows, options)
        elif kind == 'points':
            got = read_points(out, options)
            want = want_points(v, rows, options)
        else:
            got = read_mask(out, options, v)
            want = want_mask(v, rows, options)
        for a, b in zip(got, want):
            np.testing.assert_array_equal(a, b, '%s, %s' % (text, v))
        left.append(len(got[0]) if kind != 'mask' else 2)
    assert out.over()
    print('%s: %d views, %d without a row, %d with one' % (
        text, views, left.count(0), left.count(1)))


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, n):
        self.at += n
        assert self.at <= len(self.data)
        return self.data[self.at - n:self.at]

    def over(self):
        return self.at == len(self.data)


def main():
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for text, views in FIELDS:
        compare(sys.argv[1], text, views, rng)


if __name__ == '__main__':
    main()
