# SPDX-License-Identifier: MIT
"""Compares the boxes, masks and lines of YOLO of a generated dataset.

usage: objects_truth.py DIR
"""

import collections
import json
import pathlib
import sys

import numpy as np
from PIL import Image

TOP = pathlib.Path(sys.argv[1])
COCO = json.loads((TOP / 'instances.json').read_text())
ROWS = collections.defaultdict(list)
for row in COCO['annotations']:
    ROWS[row['image_id']].append(row)
assert len(COCO['images']) == 60 and len(COCO['categories']) == 5
seen = collections.Counter()
for image in COCO['images']:
    stem = pathlib.Path(image['file_name']).stem
    size = (image['width'], image['height'])
    with Image.open(TOP / 'images' / image['file_name']) as jpeg:
        assert jpeg.size == size
    with Image.open(TOP / 'masks' / (stem + '.png')) as png:
        assert png.size == size and png.mode == 'L'
        mask = np.asarray(png)
    rows = ROWS[image['id']]
    assert 1 <= len(rows) <= 8
    lines = [line.split() for line in
             (TOP / 'labels' / (stem + '.txt')).read_text().splitlines()]
    assert len(lines) == len(rows)
    covered = np.zeros(mask.shape, bool)
    for row, line in zip(rows, lines):
        x, y, w, h = row['bbox']
        kind = row['category_id']
        seen[kind] += 1
        part = mask[y:y + h, x:x + w] == kind
        # The box is the smallest one around the visible pixels of its object.
        assert part.shape == (h, w) and part.sum() >= row['area']
        assert part[0].any() and part[-1].any()
        assert part[:, 0].any() and part[:, -1].any()
        covered[y:y + h, x:x + w] = True
        assert int(line[0]) == kind - 1
        centre = (np.array([x + w / 2, y + h / 2, w, h]) /
                  np.array(size * 2))
        np.testing.assert_allclose(centre, [float(v) for v in line[1:]],
                                   atol=1e-8)
    # Every pixel that is not ground is in a box.
    assert not (mask > 0)[~covered].any()
    assert (mask > 0).sum() == sum(row['area'] for row in rows)
    for kind in range(1, 6):
        assert (mask == kind).sum() == sum(
            row['area'] for row in rows if row['category_id'] == kind)
assert len(seen) == 5
