# SPDX-License-Identifier: MIT
"""Tests of fields of examples: boxes, points, masks, classes and bytes in all
layouts are compared with NumPy's results, serving by serving."""

import collections
import json
import os
import struct
import sys
import tarfile
import zlib

import numpy as np
import pytest

import refrain
from conftest import TREE, command

sys.path.insert(0, str(TREE / 'tests' / 'system'))
from fields_map import (BOX, want_boxes, want_mask,  # noqa: E402
                        want_points)

SAMPLE = (32, 24)   # width, height
POINTS = 5
CATEGORIES = (3, 7, 20)
Example = collections.namedtuple('Example', 'ids rows points')


def chunk(kind, data):
    body = kind + data
    return struct.pack('>I', len(data)) + body + \
        struct.pack('>I', zlib.crc32(body))


def write_ids(path, ids, palette=False):
    """Write a PNG of u8 or u16 samples: grey, or indices of a palette."""
    depth = 8 * ids.itemsize
    rows = ids.astype('>u%d' % ids.itemsize).reshape(len(ids), -1)
    raw = b''.join(b'\0' + row.tobytes() for row in rows)
    data = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack(
        '>IIBBBBB', ids.shape[1], ids.shape[0], depth, 3 if palette else 0,
        0, 0, 0))
    if palette:
        colours = np.arange(256, dtype=np.uint8)[::-1]
        data += chunk(b'PLTE', np.repeat(colours, 3).tobytes())
    path.write_bytes(data + chunk(b'IDAT', zlib.compress(raw)) +
                     chunk(b'IEND', b''))


def draw_example(rng):
    """Draw rectangles that do not touch each other, one for each id. Some
    images have none."""
    width, height = rng.integers(40, 100, 2)
    ids = np.zeros((height, width), np.uint8)
    count = int(rng.choice([0, 1, 2, 3, 6]))
    rows = []
    for _ in range(30):
        w, h = rng.integers(4, 30, 2)
        x, y = rng.integers(0, width - w), rng.integers(0, height - h)
        if len(rows) == count:
            break
        if ids[max(y - 1, 0):y + h + 1, max(x - 1, 0):x + w + 1].any():
            continue
        ids[y:y + h, x:x + w] = len(rows) + 1
        rows.append(((x, y, x + w, y + h), int(rng.integers(3)),
                     rng.random() < 0.1))
    boxes = np.array(rows, BOX) if rows else np.zeros(0, BOX)
    points = np.zeros((len(rows), POINTS, 3), np.float32)
    points[..., :2] = rng.integers(0, (width, height), points.shape[:2] + (2,))
    points[..., 2] = rng.integers(0, 3, points.shape[:2])
    return Example(ids, boxes, points)


def row_of(box, points):
    x0, y0, x1, y1 = map(float, box['at'])
    return {'bbox': [x0, y0, x1 - x0, y1 - y0],
            'category_id': CATEGORIES[box['label']],
            'iscrowd': int(box['flags']),
            'keypoints': [float(v) for v in points.ravel()]}


def yolo_of(example):
    height, width = example.ids.shape
    lines = []
    for box in example.rows:
        x0, y0, x1, y1 = map(float, box['at'])
        lines.append('%d %r %r %r %r\n' % (
            box['label'], (x0 + x1) / 2 / width, (y0 + y1) / 2 / height,
            (x1 - x0) / width, (y1 - y0) / height))
    return ''.join(lines)


def write_coco(path, examples):
    images, rows = [], []
    for i, (name, e) in enumerate(examples.items()):
        images.append({'id': i + 100, 'file_name': name + '.png',
                       'width': e.ids.shape[1], 'height': e.ids.shape[0]})
        rows += [dict(row_of(*r), image_id=i + 100)
                 for r in zip(e.rows, e.points)]
    path.write_text(json.dumps(
        {'images': [{k: int(v) if k != 'file_name' else v
                     for k, v in i.items()} for i in images],
         'annotations': [dict(r, id=i) for i, r in enumerate(rows)],
         'categories': [{'id': n, 'name': 'class %d' % n}
                        for n in CATEGORIES]}))


@pytest.fixture(scope='session')
def shapes(tmp_path_factory):
    """(directory, {stem: Example}): images of painted ids, with files in all
    layouts."""
    top = tmp_path_factory.mktemp('shapes')
    rng = np.random.default_rng(3)
    examples = {'%03d' % i: draw_example(rng) for i in range(60)}
    for name in ('images', 'masks', 'wide', 'labels'):
        (top / name).mkdir()
    for stem, e in examples.items():
        write_ids(top / 'images' / (stem + '.png'), e.ids * 40)
        write_ids(top / 'masks' / (stem + '.png'), e.ids, palette=True)
        write_ids(top / 'wide' / (stem + '.png'),
                  e.ids.astype(np.uint16) * 1000)
        (top / 'labels' / (stem + '.txt')).write_text(yolo_of(e))
        (top / 'images' / (stem + '.json')).write_text(json.dumps(
            [row_of(*r) for r in zip(e.rows, e.points)]))
        (top / 'images' / (stem + '.cls.txt')).write_text(
            ' '.join(str(box['label']) for box in e.rows))
    write_coco(top / 'coco.json', examples)
    return top, examples


OPTIONS = {'batch': 16, 'size': '%dx%d' % SAMPLE, 'window': 64, 'threads': 2,
           'seed': 5, 'memory_bytes': '64M', 'exact': True,
           'allow_duplicates': True}
ALL = ('image; boxes; points points=5 pairs=1-2,4-5; mask; '
       'wide=wide/ kind=mask type=u16 fill=65535; '
       'classes=cls.txt; json=json kind=bytes max=100000')


def views(batch):
    for c in batch.crops:
        yield {'at': np.array([c['x'], c['y']]),
               'size': np.array([c['width'], c['height']]),
               'image': np.array([c['image_width'], c['image_height']]),
               'sample': np.array(SAMPLE), 'flip': bool(c['flip'])}


def rows_of(batch, name, i):
    column = batch[name]
    first, last = (int(n) for n in column.offsets[i:i + 2])
    assert column.lengths[i] == last - first
    return column.values[first:last]


def check_boxes(batch, i, view, example, label, **options):
    rows = example.rows.copy()
    rows['label'] = [label(n) for n in rows['label']]
    want = want_boxes(view, rows, options)
    for name, column in zip(('boxes', 'boxes.class', 'boxes.which'), want):
        np.testing.assert_array_equal(rows_of(batch, name, i), column)
    return want[3]


def check_points(batch, i, view, example, **options):
    want = want_points(view, example.points,
                       {'points': POINTS, 'pairs': '1-2,4-5', **options})
    np.testing.assert_array_equal(rows_of(batch, 'points', i), want[0])
    np.testing.assert_array_equal(rows_of(batch, 'points.which', i), want[1])


def category(label):
    return CATEGORIES[label]


def check_all(batch, loader, top, examples, label=category):
    for i, view in enumerate(views(batch)):
        stem = os.path.basename(loader.path(batch.indices[i]))[:3]
        e = examples[stem]
        assert tuple(view['image']) == e.ids.shape[::-1]
        check_boxes(batch, i, view, e, label)
        check_points(batch, i, view, e)
        np.testing.assert_array_equal(
            batch['mask'].values[i], want_mask(view, (e.ids,), {})[1])
        np.testing.assert_array_equal(
            batch['wide'].values[i],
            want_mask(view, (e.ids.astype(np.uint16) * 1000,),
                      {'type': 'u16', 'fill': '65535'})[1])
        np.testing.assert_array_equal(rows_of(batch, 'classes', i),
                                      e.rows['label'])
        text = (top / 'images' / (stem + '.json')).read_bytes()
        assert rows_of(batch, 'json', i).tobytes() == text


@pytest.mark.parametrize('more', [
    {}, {'echo': 2}, {'echo': 4, 'threads': 4}, {'echo': 4, 'threads': 1},
    {'echo': 2, 'echo_point': 'after'}, {'echo': 2, 'echo_point': 'batch'},
    {'echo': 3, 'augment': 'iou'}, {'augment': 'eval'}, {'augment': 'fit'},
    {'augment': 'none'}, {'echo': 2, 'exact': False, 'type': 'f32'},
], ids=str)
def test_every_serving_has_the_rows_and_masks_of_its_crop(shapes, more):
    top, examples = shapes
    options = {**OPTIONS, 'epochs': 3, **more}
    servings = 0
    with refrain.Loader(top, fields=ALL.replace('boxes', 'boxes=json').replace(
            'points p', 'points=json p'), **options) as loader:
        for _ in range(3):
            for batch in loader:
                check_all(batch, loader, top, examples)
                servings += batch.count
        stats = loader.stats()
    assert servings == 3 * 60 * options.get('echo', 1)
    assert stats['decodes'] == 3 * 60 and stats['errors'] == 0
    # the image, one json for three fields, two masks, and the text of classes
    assert stats['files_read'] == 3 * 60 * 5


@pytest.mark.parametrize('augment', ['train', 'iou'])
def test_annotations_of_coco_are_the_rows(shapes, augment):
    top, examples = shapes
    servings = 0
    with refrain.Loader(top, annotations=top / 'coco.json', fields=ALL,
                        augment=augment, echo=2, epochs=4,
                        **OPTIONS) as loader:
        for batch in (b for _ in range(4) for b in loader):
            check_all(batch, loader, top, examples, label=int)
            servings += batch.count
        assert loader.annotation_classes == ['class %d' % n
                                             for n in CATEGORIES]
    assert servings == 4 * 60 * 2


@pytest.mark.parametrize('text', [
    'max=2 min_side=0', 'keep=visible min_visible=0.3 crowd max=3',
    'keep=visible min_side=4', 'max=1'])
def test_options_of_boxes_are_those_of_the_oracle(shapes, text):
    top, examples = shapes
    words = dict(w.split('=') if '=' in w else (w, '') for w in text.split())
    cut = left = 0
    with refrain.Loader(top / 'images', annotations=top / 'coco.json',
                        fields='image; boxes ' + text, epochs=20,
                        **OPTIONS) as loader:
        for batch in (b for _ in range(20) for b in loader):
            for i, view in enumerate(views(batch)):
                stem = loader.path(batch.indices[i])[:3]
                cut += check_boxes(batch, i, view, examples[stem], int,
                                   **words)
                left += len(rows_of(batch, 'boxes', i))
        assert loader.stats()['rows_cut'] == cut
    assert left > 0 and (cut > 0) == ('max' in text)


def test_yolo_is_the_same_within_rounding(shapes):
    top, examples = shapes
    with refrain.Loader(top, fields='image; boxes=labels/; mask; '
                        'wide=wide/ kind=mask type=u16', epochs=2, echo=2,
                        **OPTIONS) as loader:
        for batch in (b for _ in range(2) for b in loader):
            for i, view in enumerate(views(batch)):
                stem = os.path.basename(loader.path(batch.indices[i]))[:3]
                rows = examples[stem].rows.copy()
                rows['flags'] = 0   # the format has no crowds
                want = want_boxes(view, rows, {})
                got = rows_of(batch, 'boxes', i)
                # a box on the edge may be kept or dropped
                if len(got) != len(want[0]):
                    continue
                np.testing.assert_allclose(got, want[0], atol=1e-3)
                np.testing.assert_array_equal(
                    rows_of(batch, 'boxes.class', i), want[1])


def seen_ids(view, ids):
    """Return the lowest and the highest id of the pixels that a pixel of the
    sample shows, and of one more on each side where that is possible."""
    low = high = ids.astype(int)
    for axis in (1, 0):     # rows, then columns
        size, n = view['size'][axis], view['sample'][axis]
        centres = view['at'][axis] + (np.arange(n) + 0.5) * size / n
        support = max(size / n, 1)
        first = np.maximum(np.floor(centres - support), 0).astype(int)
        last = np.ceil(centres + support).astype(int)
        low, high = (
            np.array([f(of[a:b], axis=0) for a, b in zip(first, last)]).T
            for f, of in ((np.min, low), (np.max, high)))
    if view['flip']:
        low, high = low[:, ::-1], high[:, ::-1]
    return low, high


def blob_box(ids, number):
    y, x = np.nonzero(ids == number)
    return np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])


@pytest.mark.parametrize('augment, epochs', [('train', 42), ('iou', 9)])
def test_image_mask_and_boxes_agree_to_one_pixel(shapes, augment, epochs):
    """Check over 10,000 servings that all fields follow one crop and one
    flip."""
    top, examples = shapes
    servings = blobs = 0
    with refrain.Loader(
            top, annotations=top / 'coco.json', fields='image; mask; boxes '
            'keep=visible min_side=0 crowd; wide=wide/ kind=mask type=u16',
            echo=4, epochs=epochs, augment=augment, **OPTIONS) as loader:
        for batch in (b for _ in range(epochs) for b in loader):
            images = batch.data[..., 0].astype(int)
            for i, view in enumerate(views(batch)):
                ids = batch['mask'].values[i]
                stem = os.path.basename(loader.path(batch.indices[i]))[:3]
                low, high = seen_ids(view, examples[stem].ids)
                one = low == high
                assert one.any() and (ids[one] == low[one]).all()
                assert abs(images[i] - 40 * low)[one].max() <= 1
                numbers = rows_of(batch, 'boxes.which', i) + 1
                for number, box in zip(numbers, rows_of(batch, 'boxes', i)):
                    if (box[2:] - box[:2]).min() < 1:
                        continue
                    assert abs(blob_box(ids, number) - box).max() <= 1
                    blobs += 1
                assert set(np.unique(ids)) <= {0, *numbers}
            servings += batch.count
    assert servings == epochs * 4 * 60 and blobs > servings


def region_of(crops):
    """The union of crops, in whole pixels: x, y, width, height."""
    first = np.floor(np.min([view['at'] for view in crops], axis=0))
    last = np.ceil(np.max([view['at'] + view['size'] for view in crops],
                          axis=0))
    return (*first, *(last - first))


@pytest.mark.parametrize('augment', ['iou', 'train'])
@pytest.mark.parametrize('kind', ['png', 'jpeg'])
def test_only_the_union_of_the_crops_is_decoded(shapes, tmp_path, kind,
                                                augment):
    """The crops of boxes, too, are known before the decode."""
    top, margin = shapes[0] / 'images', 0
    options = {**OPTIONS, 'annotations': shapes[0] / 'coco.json', 'echo': 3,
               'fields': 'image; boxes', 'augment': augment}
    if kind == 'jpeg':
        # libjpeg crops to whole MCUs, with one more column on each side
        top, margin = tmp_path / 'made', 2 * 17
        command('make-dataset', '--classes', 3, '--images', 60, '--size',
                '320x240', '--boxes', top)
        options.update(annotations=top / 'instances.json', size='200x160')
    crops, times = collections.defaultdict(list), collections.Counter()
    with refrain.Loader(top, epochs=3, **options) as loader:
        for batch in (b for _ in range(3) for b in loader):
            for index, echo, view in zip(batch.indices, batch.echoes,
                                         views(batch)):
                crops[index, times[index, echo]].append(view)
                times[index, echo] += 1
        stats = loader.stats()
    assert stats['decodes'] == len(crops) == 3 * 60
    regions = [region_of(of) for of in crops.values()]
    least = sum(3 * w * h for _, _, w, h in regions)
    most = sum(3 * h * (w + margin) for _, _, w, h in regions)
    whole = sum(3 * np.prod(of[0]['image']) for of in crops.values())
    assert least <= stats['decoded_bytes'] <= min(most, whole - 1)


def text_of(batch):
    """Return all columns of a batch, for comparisons."""
    return [(name, c.values.tobytes(),
             c.offsets.tobytes() if c.offsets is not None else b'')
            for name, c in ((n, batch[n]) for n in batch.keys())]


def run_of(top, epochs=1, **more):
    with refrain.Loader(top, epochs=epochs, **more) as loader:
        return [text_of(b) for _ in range(epochs - loader.epoch)
                for b in loader]


@pytest.mark.parametrize('point', ['before', 'after', 'batch'])
def test_columns_do_not_depend_on_threads_and_memory(shapes, point):
    top, _ = shapes
    options = {**OPTIONS, 'fields': ALL, 'annotations': top / 'coco.json',
               'epochs': 2, 'echo': 3, 'echo_point': point,
               'augment': 'iou'}
    one = run_of(top, **{**options, 'threads': 1})
    assert run_of(top, **{**options, 'threads': 4}) == one
    few = {**options, 'threads': 2, 'memory_bytes': '18M',
           'batches_ahead': 1}
    assert run_of(top, **few) == one


def test_a_resumed_run_has_the_same_columns(shapes):
    top, _ = shapes
    options = {**OPTIONS, 'fields': ALL, 'annotations': top / 'coco.json',
               'epochs': 2, 'echo': 2.5, 'augment': 'iou'}
    whole = run_of(top, **options)
    with refrain.Loader(top, **options) as loader:
        stream = iter(loader)
        for _ in range(7):
            batch = next(stream)
        state = batch.state_dict()
        del batch
    rest = run_of(top, state=state, **options)
    assert rest == whole[7:]
    for other in ({'fields': ALL.replace('mask;', 'mask fill=9;')},
                  {'fields': None, 'annotations': None, 'augment': 'train'}):
        with pytest.raises(refrain.Error, match='differs|dataset'):
            refrain.Loader(top, state=state, **{**options, **other})


def link_files(top, to, *patterns):
    for path in (p for pattern in patterns for p in top.glob(pattern)):
        link = to / path.relative_to(top)
        link.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, link)


@pytest.mark.parametrize('more', [
    {'augment': 'iou', 'annotations': 'coco.json'}, {}, {'yolo': True},
    {'echo_point': 'after'}, {'memory_bytes': '20M', 'batches_ahead': 1},
], ids=str)
def test_fields_of_images_that_a_function_decodes_are_the_same(
        shapes, tmp_path, more):
    top, examples = shapes
    options = {**OPTIONS, 'echo': 3, 'epochs': 2,
               'fields': ALL.replace('boxes', 'boxes=json').replace(
                   'points p', 'points=json p'), **more}
    if options.pop('yolo', False):
        options['fields'] = 'image; boxes=labels/; mask; ' \
            'wide=wide/ kind=mask type=u16'
        link_files(top, tmp_path, 'images/*.png', 'labels/*')
    else:
        link_files(top, tmp_path, 'images/*')
    link_files(top, tmp_path, 'masks/*', 'wide/*')
    if 'annotations' in more:
        options.update(annotations=top / more['annotations'], fields=ALL)

    def decode(data, path, index):
        return np.repeat(40 * examples[os.path.basename(path)[:3]].ids[
            ..., None], 3, axis=2)

    own = run_of(tmp_path, **options)
    assert run_of(tmp_path, decode=decode, decoded_max_bytes=30000,
                  **options) == own


def test_what_does_not_fit_a_decoded_image_is_damage(damaged):
    def decode(data, path, index):
        return np.zeros((50, 60, 3), np.uint8)

    with pytest.raises(refrain.Error, match='large, but the image 60 x 50'):
        run_of(damaged, decode=decode, decoded_max_bytes=9000, policy='fail',
               fields='image; mask; boxes=json; classes=cls.txt', **OPTIONS)


def test_members_of_a_tar_are_those_of_the_folder(tmp_path):
    """The members may be anywhere in the shard, and masks are PNGs."""
    top = tmp_path / 'made'
    command('make-dataset', '--classes', 3, '--images', 40, '--size', '96x72',
            '--boxes', '--masks', '--yolo', top)
    names = [(path, '%s/%s.%s' % ('x', path.stem, {
        'images': 'jpg', 'masks': 'mask.png', 'labels': 'txt'}[
            path.parent.name])) for path in top.glob('*/*')]
    # The images are in the order of the examples.
    names.sort(key=lambda n: (not n[1].endswith('jpg'), n[1].endswith('jpg')
                              and n[1], zlib.crc32(n[1].encode())))
    with tarfile.open(tmp_path / 'one.tar', 'w') as tar:
        for path, name in names:
            tar.add(path, name)
    options = {**OPTIONS, 'epochs': 2, 'echo': 2}
    folder = run_of(top, fields='image; boxes=labels/txt; mask=masks/',
                    **options)
    shard = run_of(tmp_path / 'one.tar',
                   fields='image; boxes=txt; mask=mask.png', **options)
    assert len(folder) == len(shard)
    for a, b in zip(folder, shard):
        for (name, *one), (other, *two) in zip(a, b):
            assert name == other and (name == 'class' or one == two), name


def test_padded_rows_are_the_packed_ones(shapes):
    top, _ = shapes
    with refrain.Loader(top / 'images', annotations=top / 'coco.json',
                        fields='image; boxes max=4', **OPTIONS) as loader:
        batch = next(iter(loader))
        for name, fill in (('boxes', 0), ('boxes.class', -1)):
            column = batch[name]
            padded = column.padded(fill=fill)
            assert padded.shape[:2] == (16, max(column.lengths))
            assert column.padded(7).shape[1] == 7
            assert padded.dtype == column.values.dtype
            for i, n in enumerate(column.lengths):
                np.testing.assert_array_equal(padded[i, :n],
                                              rows_of(batch, name, i))
                assert (padded[i, n:] == fill).all()
        with pytest.raises(ValueError, match='rows'):
            batch['boxes'].padded(0)
        with pytest.raises(ValueError, match='image'):
            batch['image'].padded()


def rows_in(text):
    """Return {column: rows of each example} for the result of text_of();
    without offsets, all values."""
    found = {}
    for name, values, offsets in text:
        at = np.frombuffer(offsets, np.uint64).astype(int).tolist()
        width = len(values) // max(1, at[-1]) if at else 0
        found[name] = [values[a * width:b * width]
                       for a, b in zip(at, at[1:])] or [values]
    return found


def test_jobs_of_a_share_have_slices_of_the_columns(shapes):
    """Each job must get the columns that it would have alone."""
    top, _ = shapes
    options = {**OPTIONS, 'fields': ALL, 'annotations': top / 'coco.json',
               'echo': 2, 'augment': 'iou', 'batch': 12}
    alone = run_of(top, **options)
    shares = {**options, 'share': 'fields', 'share_jobs': 2, 'epochs': 1,
              'share_batch': 12}
    with refrain.Loader(top, **shares) as one, \
            refrain.Loader(top, **{**shares, 'batch': 4}) as two:
        small, jobs = iter(two), []
        for batch in one:
            whole = text_of(batch)
            assert whole == alone[len(jobs)]
            slices = [rows_in(text_of(next(small))) for _ in range(3)]
            for name, rows in rows_in(whole).items():
                both = [s[name] for s in slices]
                if len(rows) == 1:  # the column has no offsets
                    both = [[b''.join(r for s in both for r in s)]]
                assert [r for s in both for r in s] == rows, name
            jobs.append(batch.step)
            del batch
        decodes = one.stats()['decodes'] + two.stats()['decodes']
    assert len(jobs) == len(alone) and decodes == 60
    other = {**shares, 'share': 'other'}
    with refrain.Loader(top, **other):
        with pytest.raises(refrain.Error, match='fields differs'):
            refrain.Loader(top, **{
                **other, 'fields': ALL.replace('mask;', 'mask fill=9;')})


def test_columns_are_read_through_dlpack(shapes):
    top, _ = shapes
    with refrain.Loader(top, fields='image; boxes=json; mask',
                        **OPTIONS) as loader:
        batch = next(iter(loader))
        for name in batch.keys():
            column = batch[name]
            if name in ('image', 'class'):
                continue
            copy = np.from_dlpack(batch.view(name))
            np.testing.assert_array_equal(copy, column.values)
            assert copy.ctypes.data == column.values.ctypes.data


# -- Damage -------------------------------------------------------------------

@pytest.fixture
def damaged(shapes, tmp_path):
    """A copy of the dataset, for tests that damage it."""
    top = tmp_path / 'copy'
    for name in ('images', 'masks'):
        (top / name).mkdir(parents=True)
        for path in (shapes[0] / name).iterdir():
            os.link(path, top / name / path.name)
    return top


def write_anew(path, data):
    """Replace a file; do not write through a link to it."""
    path.unlink()
    path.write_bytes(data)


DAMAGE = {
    'mask cut': ('masks/007.png', lambda d: d[:-20], 'truncated'),
    'mask damaged': ('masks/007.png', lambda d: d[:-20] + bytes([
        d[-20] ^ 1]) + d[-19:], 'damaged'),
    'mask of another size': ('masks/007.png', None, 'large'),
    'json': ('images/007.json', lambda d: d[:-2], 'damaged JSON'),
    'json without a byte': ('images/007.json', lambda d: b'', 'damaged JSON'),
    'json of another shape': ('images/007.json', lambda d: b'{"shapes": []}',
                              'none of annotations'),
    'no json': ('images/007.json', lambda d: None, 'no member'),
    'no mask': ('masks/007.png', lambda d: None, 'no member'),
}


@pytest.mark.parametrize('name', DAMAGE)
@pytest.mark.parametrize('echo', [1, 2])
def test_a_damaged_member_is_one_damaged_example(damaged, name, echo):
    path, change, says = DAMAGE[name]
    if change is None:
        write_anew(damaged / path, (damaged / 'masks/008.png').read_bytes())
    elif change(b'x' * 99) is None:
        (damaged / path).unlink()
    else:
        write_anew(damaged / path, change((damaged / path).read_bytes()))
    options = {**OPTIONS, 'fields': 'image; boxes=json; mask',
               'max_damage': 1, 'epochs': 2, 'echo': echo}
    with refrain.Loader(damaged, **options) as loader:
        for batch in (b for _ in range(2) for b in loader):
            bad = batch.status != 0
            assert (batch.indices[bad] != batch.substitutes[bad]).all()
        stats = loader.stats()
    assert (stats['damaged_examples'], stats['errors']) == (1, 2)
    assert stats['substituted'] == 2 * echo
    with pytest.raises(refrain.Error, match=says) as caught:
        run_of(damaged, policy='fail', **options)
    assert '007.png' in str(caught.value)


def test_zero_filled_examples_have_no_rows_and_masks_of_fill(damaged):
    write_anew(damaged / 'images/007.json', b'{')
    zeroed = 0
    with refrain.Loader(damaged, fields='image; boxes=json; mask fill=77',
                        policy='zero', **OPTIONS) as loader:
        for batch in loader:
            for i in np.flatnonzero(batch.status):
                assert len(rows_of(batch, 'boxes', i)) == 0
                assert (batch['mask'].values[i] == 77).all()
                zeroed += 1
    assert zeroed == 1


def test_optional_members_may_be_missing(damaged):
    (damaged / 'images/007.json').unlink()
    (damaged / 'masks/007.png').unlink()
    seen = 0
    with refrain.Loader(damaged, fields='image; boxes=json optional; '
                        'mask optional', echo=2, epochs=1,
                        **OPTIONS) as loader:
        for batch in loader:
            for i, index in enumerate(batch.indices):
                if loader.path(index).endswith('007.png'):
                    assert len(rows_of(batch, 'boxes', i)) == 0
                    assert (batch['mask'].values[i] == 255).all()
                    seen += 1
        assert loader.stats()['errors'] == 0
    assert seen == 2


def test_ids_that_do_not_fit_are_damage(shapes):
    with pytest.raises(refrain.Error, match='type=u16'):
        run_of(shapes[0], fields='image; wide=wide/ kind=mask; mask',
               policy='fail', **OPTIONS)


@pytest.mark.parametrize('options, says', [
    ({'fields': 'image; boxes; x=foo kind=bytes'}, "'foo'.*json"),
    ({'fields': 'image; mask=nowhere/'}, "'nowhere/'"),
    ({'fields': 'boxes=json'}, 'kind image'),
    ({'fields': 'image; colour'}, 'kind'),
    ({'fields': 'image=png; boxes=json'}, 'member'),
    ({'augment': 'iou'}, 'boxes'),
    ({'annotations': 'coco.json'}, 'annotations'),
    ({'fields': 'image; points; mask; wide=wide/ kind=mask',
      'annotations': 'coco.json'}, '17 points'),
    ({'fields': 'image; boxes', 'annotations': 'none.json'}, 'none.json'),
    ({'fields': 'image; boxes max=1000000'}, 'memory_bytes'),
], ids=str)
def test_what_cannot_be_is_refused_at_open(shapes, options, says):
    if 'annotations' in options:
        options = {**options,
                   'annotations': shapes[0] / options['annotations']}
    with pytest.raises((refrain.Error, OSError), match=says):
        refrain.Loader(shapes[0], **{**OPTIONS, **options})


def test_annotations_of_another_dataset_are_refused(shapes, data):
    with pytest.raises(refrain.Error, match='no image of the dataset'):
        refrain.Loader(data, annotations=shapes[0] / 'coco.json',
                       fields='image; boxes', **OPTIONS)


def write_images(top, names, side=16):
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        write_ids(top / name, np.zeros((side, side), np.uint8))


SMALL = {'batch': 4, 'size': '8x8', 'augment': 'none', 'threads': 2,
         'epochs': 1, 'allow_duplicates': True}


def test_rows_do_not_exceed_the_memory(tmp_path):
    """Neither the rows of one huge member, which is damaged, nor those of many
    large members, which wait for each other, may exceed the memory."""
    names = ['%02d.png' % i for i in range(12)]
    write_images(tmp_path, names)
    row = {'bbox': [1, 2, 3, 4], 'label': 1, 'keypoints': [1, 2, 2] * 64}
    large = json.dumps([row] * 1500)
    for name in names:
        (tmp_path / name).with_suffix('.json').write_text(large)
    (tmp_path / '05.json').write_text(json.dumps([row] * 14000))
    options = {**SMALL, 'threads': 4, 'memory_bytes': '20M',
               'fields': 'image; boxes=json kind=boxes max=9'}
    with refrain.Loader(tmp_path, max_damage=1, **options) as loader:
        for batch in loader:
            pass
        stats = loader.stats()
    assert stats['damaged_examples'] == 1
    assert stats['memory_bytes_peak'] <= 20 << 20
    with pytest.raises(refrain.Error, match="05.png.*rows take too much"):
        run_of(tmp_path, policy='fail', **options)


def write_entries(top, entries):
    """Write a COCO JSON file for {file_name: (width, height)}, with one box for
    each image."""
    path = top / 'entries.json'
    path.write_text(json.dumps({
        'images': [{'id': i, 'file_name': name, 'width': w, 'height': h}
                   for i, (name, (w, h)) in enumerate(entries.items())],
        'annotations': [{'id': i, 'image_id': i, 'category_id': 1,
                         'bbox': [1, 1, 9, 9]} for i in range(len(entries))],
        'categories': [{'id': 1, 'name': 'thing'}]}))
    return path


def test_an_entry_of_annotations_is_for_one_image(tmp_path):
    top = tmp_path / 'top'
    write_images(top, ['x/1.png', 'y/1.png'])
    options = {**SMALL, 'batch': 2, 'fields': 'image; boxes'}
    both = write_entries(tmp_path, {'1.png': (16, 16)})
    with pytest.raises(refrain.Error, match="'x/1.png' and 'y/1.png'"):
        refrain.Loader(top, annotations=both, **options)
    each = write_entries(tmp_path, {n: (16, 16) for n in
                                    ('x/1.png', 'y/1.png')})
    with refrain.Loader(top, annotations=each, **options) as loader:
        assert sum(len(b['boxes'].values) for b in loader) == 2


def test_sizes_in_annotations_are_those_of_the_images(tmp_path):
    top = tmp_path / 'top'
    names = ['1.png', '2.png', '3.png', '4.png']
    write_images(top, names)
    options = {**SMALL, 'fields': 'image; boxes'}
    sizes = dict.fromkeys(names, (16, 16))
    wrong = write_entries(tmp_path, {**sizes, '3.png': (640, 480)})
    with pytest.raises(refrain.Error, match='3.png.*640 x 480 in the'):
        run_of(top, annotations=wrong, policy='fail', **options)
    with refrain.Loader(top, annotations=wrong, max_damage=1,
                        **options) as loader:
        assert [b.count for b in loader] == [4]
        assert loader.stats()['damaged_examples'] == 1
    unknown = write_entries(tmp_path, {**sizes, '3.png': (0, 0)})
    assert len(run_of(top, annotations=unknown, policy='fail',
                      **options)) == 1


def test_columns_live_as_long_as_their_batch(shapes):
    top, _ = shapes
    loader = refrain.Loader(top / 'images', annotations=top / 'coco.json',
                            fields='photo kind=image; boxes; y kind=class',
                            **OPTIONS)
    batch = next(iter(loader))
    before = text_of(batch)
    loader.close()
    assert text_of(batch) == before
    assert batch.keys() == ('photo', 'y', 'boxes', 'boxes.class',
                            'boxes.which')


# -- PyTorch ------------------------------------------------------------------

def test_a_dataset_of_pytorch_yields_the_fields(shapes):
    torch = pytest.importorskip('torch')
    refrain_torch = pytest.importorskip('refrain.torch')
    top, _ = shapes
    options = {**OPTIONS, 'epochs': 1, 'fields': ALL,
               'annotations': top / 'coco.json'}
    jagged = hasattr(getattr(torch, 'nested', None),
                     'nested_tensor_from_jagged')
    steps = 0
    with refrain.Loader(top, **options) as loader:
        for batch, (images, labels, fields) in zip(
                loader, refrain_torch.IterableDataset(top, **options)):
            assert (images.numpy() == batch.data).all()
            assert (labels.numpy() == batch.labels).all()
            assert list(fields) == list(batch.keys()[2:])
            assert (fields['wide'].numpy() == batch['wide'].values).all()
            assert (fields['mask'].numpy() == batch['mask'].values).all()
            rows = fields['boxes']
            values, offsets = (rows.values(), rows.offsets()) if jagged \
                else rows
            assert (values.numpy() == batch['boxes'].values).all()
            assert offsets.tolist() == batch['boxes'].offsets.tolist()
            with pytest.raises(ValueError, match='one row'):
                refrain_torch.rows(batch, 'mask')
            steps += 1
    assert steps == 4


def test_rows_are_nested_tensors_where_pytorch_has_them(shapes, monkeypatch):
    """PyTorch's own constructor gets the values and the offsets."""
    torch = pytest.importorskip('torch')
    refrain_torch = pytest.importorskip('refrain.torch')
    monkeypatch.setattr(torch.nested, 'nested_tensor_from_jagged',
                        lambda *parts: parts, raising=False)
    with refrain.Loader(shapes[0], fields='image; boxes=json',
                        **OPTIONS) as loader:
        batch = next(iter(loader))
        values, offsets = refrain_torch.rows(batch, 'boxes')
        assert values.data_ptr() == batch['boxes'].values.ctypes.data
        assert offsets.dtype == torch.int64
        assert offsets.tolist() == batch['boxes'].offsets.tolist()


@pytest.mark.filterwarnings('ignore:The PyTorch API of nested tensors')
def test_rows_become_the_nested_tensors_of_older_pytorch(shapes):
    """Those from before nested_tensor_from_jagged(), as doc/python.md says."""
    torch = pytest.importorskip('torch')
    refrain_torch = pytest.importorskip('refrain.torch')
    if not hasattr(torch, 'nested') or hasattr(
            torch.nested, 'nested_tensor_from_jagged'):
        pytest.skip('this PyTorch has others')
    with refrain.Loader(shapes[0], fields='image; boxes=json',
                        **OPTIONS) as loader:
        batch = next(iter(loader))
        values, offsets = refrain_torch.rows(batch, 'boxes')
        nested = torch.nested.as_nested_tensor(
            list(values.tensor_split(offsets[1:-1])))
        np.testing.assert_array_equal(
            torch.nested.to_padded_tensor(nested, 0).numpy(),
            batch['boxes'].padded())
