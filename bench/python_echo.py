#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The echo stage over a torchvision pipeline whose decoding is slow.

    python_echo.py [--images N] [--factor E] [--ratio R ...]

Makes images, and trains on them for one epoch with a DataLoader whose workers
decode and augment: once as it is, and once with refrain.torch.EchoDataset
between decoding and augmentation. Decoding takes R times as long as the trainer
takes for a sample; both sleep until their time is over. A row is the servings a
second with echoes, divided by those without, from the start of the workers to
the last batch, ramp and drain included; and the bar, 0.9 min(E, R). Each image
must be served exactly E times. The last line is PASS or FAIL.
"""
import argparse
import collections
import io
import json
import os
import random
import sys
import time

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

import refrain.torch

BATCH, WORKERS, SAMPLE_S = 32, 2, 2e-3
WINDOW = 8 * BATCH      # of each worker, which has some 1,500 images
SIDE = 64


def make_images(count):
    """JPEGs of coloured noise, in memory."""
    dice, files = random.Random(1), []
    for _ in range(count):
        image = Image.frombytes('RGB', (20, 15), dice.randbytes(900))
        file = io.BytesIO()
        image.resize((160, 120), Image.BICUBIC).save(file, 'JPEG')
        files.append(file.getvalue())
    return files


class Decoded(Dataset):
    """(number, image) of each; as slow as it is told to be."""

    def __init__(self, files, each_s):
        self.files, self.each_s = files, each_s

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        ends = time.monotonic() + self.each_s
        image = Image.open(io.BytesIO(self.files[i])).convert('RGB')
        time.sleep(max(ends - time.monotonic(), 0))
        return i, image


class Augment:
    """The usual transforms for training."""

    def __init__(self):
        self.image = transforms.Compose([
            transforms.RandomResizedCrop(SIDE),
            transforms.RandomHorizontalFlip(), transforms.ToTensor()])

    def __call__(self, example):
        return example[0], self.image(example[1])


class Augmented(Dataset):
    """The pipeline as it is without echoes."""

    def __init__(self, decoded):
        self.decoded, self.augment = decoded, Augment()

    def __len__(self):
        return len(self.decoded)

    def __getitem__(self, i):
        return self.augment(self.decoded[i])


def train(loader):
    """(servings a second, how often each image was served)."""
    counts, begun = collections.Counter(), time.monotonic()
    for numbers, images in loader:
        ends = time.monotonic() + SAMPLE_S * len(images)
        counts.update(numbers.tolist())
        time.sleep(max(ends - time.monotonic(), 0))
    return sum(counts.values()) / (time.monotonic() - begun), counts


def measure(files, ratio, factor):
    """The ratio of the throughputs."""
    decoded = Decoded(files, ratio * SAMPLE_S * WORKERS)
    options = {'batch_size': BATCH, 'num_workers': WORKERS}
    plain, counts = train(DataLoader(Augmented(decoded), shuffle=True,
                                     **options))
    assert set(counts.values()) == {1} and len(counts) == len(files)
    data = refrain.torch.EchoDataset(decoded, factor, batch=BATCH,
                                     window=WINDOW, augment=Augment())
    echoed, counts = train(DataLoader(data, **options))
    if set(counts.values()) != {factor} or len(counts) != len(files):
        sys.exit('python_echo: images are not served %d times each' % factor)
    return echoed / plain


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--images', type=int, default=3000)
    p.add_argument('--factor', type=int, default=4)
    p.add_argument('--ratio', type=float, nargs='+', default=[2, 6])
    p.add_argument('--json')
    a = p.parse_args()
    torch.set_num_threads(1)
    files, rows, missed = make_images(a.images), {}, False
    print('%-8s %8s %8s %8s' % ('R', 'ratio', 'bar', ''))
    for ratio in a.ratio:
        rows[ratio] = measure(files, ratio, a.factor)
        bar = 0.9 * min(a.factor, ratio)
        missed |= rows[ratio] < bar
        print('%-8g %8.3f %8.3f %8s' % (
            ratio, rows[ratio], bar,
            'met' if rows[ratio] >= bar else 'MISSED'), flush=True)
    if a.json:
        with open(a.json, 'w', encoding='ascii') as f:
            json.dump({'bench': 'python-echo', 'load': os.getloadavg()[0],
                       'factor': a.factor, 'rows': rows}, f)
    print('%s, load %.1f' % ('FAIL' if missed else 'PASS', os.getloadavg()[0]))
    return missed


if __name__ == '__main__':
    sys.exit(main())
