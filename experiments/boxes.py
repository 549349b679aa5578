#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data echoing for object detection: fresh examples to a target.

    boxes.py [--echo 1 2 4] [--seeds 1 2 3] [--target MAP] [--results FILE]
    boxes.py --table FILE

Draws images with up to four shapes whose boxes are known exactly, and trains a
small detector of the SSD kind on them until its mean average precision (at an
overlap of 0.5, on images that it does not train on) has reached the target in
two evaluations in a row. refrain.echo() serves each image E times, each time
with another crop, mirrored or not, in other colours; boxes follow the crop.
Writes a line of JSON for each run. Needs PyTorch and torchvision, and the
package in PYTHONPATH.
"""
import argparse
import json
import statistics
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torchvision.ops import batched_nms, box_iou

import refrain

SIDE, CLASSES, SHAPES_MAX = 64, 3, 4
IMAGES, TESTS = 4000, 400       # of an epoch; to evaluate on, usually
BATCH, WINDOW = 32, 512
LEAST_VISIBLE = 0.5             # of a box, in a crop

# -- Images with boxes ---------------------------------------------------------


def shape_mask(kind, side):
    """Where a square, a disc or a triangle is."""
    y, x = np.mgrid[0:side, 0:side] + 0.5
    if kind == 0:
        return np.ones((side, side), bool)
    if kind == 1:
        return (x - side / 2) ** 2 + (y - side / 2) ** 2 <= side ** 2 / 4
    return np.abs(x - side / 2) <= y / 2


def draw(number):
    """(image of u8, boxes of f32, classes) of an example."""
    dice = np.random.default_rng(number)
    coarse = dice.integers(0, 256, (8, 8, 3))
    image = coarse.repeat(8, 0).repeat(8, 1) // 2 + 64
    image = image + dice.integers(-24, 25, image.shape)
    boxes, kinds = [], []
    for _ in range(dice.integers(1, SHAPES_MAX + 1)):
        side, kind = dice.integers(12, 33), dice.integers(CLASSES)
        x, y = dice.integers(0, SIDE - side + 1, 2)
        box = np.array([x, y, x + side, y + side], np.float32)
        if any(overlap(box, other) > 0.1 for other in boxes):
            continue
        colour = dice.integers(0, 256, 3) + \
            dice.integers(-24, 25, (side, side, 3))
        place = image[y:y + side, x:x + side]
        mask = shape_mask(kind, side)
        place[mask] = colour[mask]
        boxes.append(box)
        kinds.append(kind)
    return (image.clip(0, 255).astype(np.uint8), np.array(boxes),
            np.array(kinds))


def overlap(a, b):
    """The intersection of two boxes over their union."""
    w = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if (w <= 0).any():
        return 0.0
    both = w.prod()
    return both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both)


class Images:
    """An epoch: the same images in another order each time."""

    def __init__(self, seed):
        self.seed, self.epoch, self.drawn = seed, 0, 0

    def set_epoch(self, epoch):
        """Called by refrain.echo()."""
        self.epoch = epoch

    def __iter__(self):
        order = np.random.default_rng([self.seed, self.epoch]).permutation(
            IMAGES)
        for number in order:
            self.drawn += 1
            yield draw([self.seed, number])


def cropped(boxes, kinds, corner, side):
    """The boxes that a crop shows enough of, in its coordinates."""
    moved = boxes - np.tile(corner, 2)
    shown = moved.clip(0, side)
    area = (shown[:, 2:] - shown[:, :2]).prod(1)
    keep = area >= LEAST_VISIBLE * (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return shown[keep] * (SIDE / side), kinds[keep]


def augment(example, seed):
    """A random crop of 60 to 100 % of the side, mirrored or not, in other
    colours."""
    image, boxes, kinds = example
    dice = np.random.default_rng(seed)
    side = int(dice.integers(SIDE * 6 // 10, SIDE + 1))
    x, y = dice.integers(0, SIDE - side + 1, 2)
    at = (np.arange(SIDE) * side // SIDE)
    out = image[y + at][:, x + at].astype(np.float32)
    boxes, kinds = cropped(boxes, kinds, np.array([x, y], np.float32), side)
    if dice.random() < 0.5:
        out = out[:, ::-1]
        boxes = boxes[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [SIDE, 0, SIDE, 0]
    out = out * dice.uniform(0.7, 1.3, 3).astype(np.float32)
    return out, boxes.astype(np.float32), kinds


def collated(samples):
    """(images, boxes and classes of each, padded with class -1)."""
    images = np.stack([image for image, _, _ in samples])
    boxes = torch.zeros(len(samples), SHAPES_MAX, 4)
    kinds = torch.full((len(samples), SHAPES_MAX), -1)
    for i, (_, b, k) in enumerate(samples):
        boxes[i, :len(b)] = torch.from_numpy(b)
        kinds[i, :len(k)] = torch.from_numpy(k)
    images = torch.from_numpy(images).permute(0, 3, 1, 2) / 128 - 1
    return images.contiguous(), boxes, kinds


# -- The detector --------------------------------------------------------------

LEVELS = ((8, (14., 20.)), (4, (27., 36.)))     # cells, sides of default boxes


def default_boxes():
    """Corners of all default boxes."""
    rows = []
    for cells, sides in LEVELS:
        at = (np.arange(cells) + 0.5) * SIDE / cells
        for y in at:
            for x in at:
                rows += [[x - s / 2, y - s / 2, x + s / 2, y + s / 2]
                         for s in sides]
    return torch.tensor(rows, dtype=torch.float32)


DEFAULTS = default_boxes()


def block(inside, outside):
    """Half the size."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, 2, 1, bias=False),
        nn.BatchNorm2d(outside), nn.ReLU(),
        nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
        nn.BatchNorm2d(outside), nn.ReLU())


class Detector(nn.Module):
    """Classes and offsets for each default box, from two levels."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(block(3, 12), block(12, 24), block(24, 48))
        self.top = block(48, 48)
        each = 2 * (CLASSES + 1 + 4)
        self.heads = nn.ModuleList(nn.Conv2d(48, each, 3, 1, 1)
                                   for _ in LEVELS)

    def forward(self, images):
        """(classes, the last of which is nothing; offsets)"""
        low = self.trunk(images)
        out = torch.cat([
            head(level).permute(0, 2, 3, 1).reshape(len(images), -1,
                                                    CLASSES + 5)
            for head, level in zip(self.heads, (low, self.top(low)))], 1)
        return out[..., :CLASSES + 1], out[..., CLASSES + 1:]


def centres(boxes):
    """Centre and size."""
    return ((boxes[..., :2] + boxes[..., 2:]) / 2,
            boxes[..., 2:] - boxes[..., :2])


def matched(boxes, kinds):
    """The class and the offsets that each default box should have."""
    want = torch.full((len(DEFAULTS),), CLASSES)
    real = kinds >= 0
    if not real.any():
        return want, torch.zeros(len(DEFAULTS), 4)
    boxes, kinds = boxes[real], kinds[real]
    iou = box_iou(boxes, DEFAULTS)
    best, which = iou.max(0)
    best[iou.argmax(1)] = 1             # each shape has one
    which[iou.argmax(1)] = torch.arange(len(boxes))
    want[best >= 0.5] = kinds[which[best >= 0.5]]
    middle, size = centres(boxes[which])
    at, side = centres(DEFAULTS)
    return want, torch.cat([(middle - at) / side * 10,
                            (size / side).log() * 5], 1)


def loss_of(model, images, boxes, kinds):
    """As of SSD: three negatives, the hardest, for each positive."""
    classes, offsets = model(images)
    pairs = [matched(b, k) for b, k in zip(boxes, kinds)]
    want = torch.stack([p[0] for p in pairs])
    aim = torch.stack([p[1] for p in pairs])
    positive = want < CLASSES
    each = functional.cross_entropy(classes.transpose(1, 2), want,
                                    reduction='none')
    worst = each.detach().masked_fill(positive, -1).argsort(1, True).argsort(1)
    negative = (worst < 3 * positive.sum(1, True).clamp(min=2)) & ~positive
    count = positive.sum().clamp(min=1)
    near = functional.smooth_l1_loss(offsets[positive], aim[positive],
                                     reduction='sum')
    return (each[positive | negative].sum() + near) / count


def found(model, images):
    """(boxes, scores, classes) of each image."""
    with torch.no_grad():
        classes, offsets = model(images)
    at, side = centres(DEFAULTS)
    middle = offsets[..., :2] / 10 * side + at
    size = (offsets[..., 2:].clamp(-10, 10) / 5).exp() * side
    corners = torch.cat([middle - size / 2, middle + size / 2], 2)
    scores, kinds = classes.softmax(2)[..., :CLASSES].max(2)
    for box, score, kind in zip(corners, scores, kinds):
        some = score > 0.05
        box, score, kind = box[some], score[some], kind[some]
        keep = batched_nms(box, score, kind, 0.45)[:20]
        yield box[keep], score[keep], kind[keep]


def average_precision(hits, count):
    """The area below the curve of precision over recall, from (score, is it
    right) of all that was found."""
    right = np.array([h for _, h in sorted(hits, key=lambda h: -h[0])])
    if not len(right):
        return 0.
    true = right.cumsum()
    precision = true / (np.arange(len(right)) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    return float((precision * right).sum() / count)


def score(model, tests):
    """The mean average precision."""
    images, boxes, kinds = tests
    hits, counts = [[] for _ in range(CLASSES)], [0] * CLASSES
    model.eval()
    for i, (box, points, kind) in enumerate(
            row for part in images.split(100) for row in found(model, part)):
        for c in range(CLASSES):
            real = boxes[i][kinds[i] == c]
            counts[c] += len(real)
            free = set(range(len(real)))
            mine = kind == c
            iou = box_iou(box[mine], real)
            for row, p in zip(iou.tolist(), points[mine].tolist()):
                near = [k for k in free if row[k] >= 0.5]
                if near:
                    free.remove(max(near, key=row.__getitem__))
                hits[c].append((p, bool(near)))
    model.train()
    return sum(map(average_precision, hits, counts)) / CLASSES


# -- A run ---------------------------------------------------------------------


def steps_of(stage):
    """Batches, epoch after epoch."""
    batch = []
    while True:
        for serving in stage:
            batch.append(serving)
            if len(batch) == BATCH:
                yield collated(batch)
                batch = []


def run(factor, seed, a):
    """A line of the results."""
    torch.manual_seed(seed)
    tests = collated([draw([seed + 1000, n]) for n in range(a.tests)])
    images, model = Images(seed), Detector()
    stage = refrain.Echo(images, factor, batch=BATCH, window=WINDOW, seed=seed,
                         augment=augment)
    optimiser = torch.optim.Adam(model.parameters(), a.rate)
    begun, curve, above = time.monotonic(), [], 0
    for step, batch in enumerate(steps_of(stage), 1):
        optimiser.zero_grad()
        loss_of(model, *batch).backward()
        optimiser.step()
        if step % a.every:
            continue
        fresh = stage.stats()['fresh']
        curve.append((step, fresh, round(score(model, tests), 4)))
        print('e %g seed %d: step %d, fresh %d, mAP %.3f' % (
            factor, seed, *curve[-1]), file=sys.stderr, flush=True)
        above = above + 1 if curve[-1][2] >= a.target else 0
        if above == 2 or step >= a.steps:
            break
    reached = curve[-2] if above == 2 else (None, None, None)
    return {'echo': factor, 'seed': seed, 'rate': a.rate, 'target': a.target,
            'steps': reached[0], 'fresh': reached[1], 'drawn': images.drawn,
            'last': curve[-1][2], 'seconds': round(time.monotonic() - begun, 1),
            'curve': curve}


def table(path):
    """The rows of doc/echoing.md."""
    runs = [json.loads(line) for line in open(path, encoding='ascii')]
    middle = {}
    print('| e | runs | fresh examples to the target | of e = 1 | steps |')
    print('| --- | --- | --- | --- | --- |')
    for e in sorted({r['echo'] for r in runs}):
        done = [r for r in runs if r['echo'] == e and r['fresh']]
        if not done:
            print('| %g | 0 | never | | |' % e)
            continue
        fresh = sorted(r['fresh'] for r in done)
        middle[e] = statistics.median(fresh)
        print('| %g | %d | %d (%d–%d) | %.2f | %d |' % (
            e, len(done), middle[e], fresh[0], fresh[-1],
            middle[e] / middle[1] if 1 in middle else float('nan'),
            statistics.median(r['steps'] for r in done)))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--echo', type=float, nargs='+', default=[1, 2, 4])
    p.add_argument('--seeds', type=int, nargs='+', default=[1, 2, 3])
    p.add_argument('--target', type=float, default=0.6)
    p.add_argument('--rate', type=float, default=2e-3)
    p.add_argument('--every', type=int, default=50, help='steps')
    p.add_argument('--steps', type=int, default=3000, help='at most')
    p.add_argument('--tests', type=int, default=TESTS,
                   help='images to evaluate on')
    p.add_argument('--results')
    p.add_argument('--table', metavar='FILE')
    a = p.parse_args()
    if a.table:
        return table(a.table)
    torch.set_num_threads(1)
    for seed in a.seeds:
        for factor in a.echo:
            line = json.dumps(run(factor, seed, a))
            if a.results:
                with open(a.results, 'a', encoding='ascii') as f:
                    f.write(line + '\n')
            print(line, flush=True)
    return None


if __name__ == '__main__':
    sys.exit(main())
