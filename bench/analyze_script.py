#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training script as a stranger writes it, for bench/analyze_setups.py: a
flat folder of photographs is read by PyTorch's DataLoader (--workers), by a
pool of threads that prepares one batch at a time (--pool), or by threads that
fill a queue (--feed). Preparation and steps sleep or compute with numpy.
Endless.
"""
import argparse
import concurrent.futures
import glob
import os
import queue
import random
import threading
import time

import numpy
from PIL import Image


def work(what):
    """'sleep:MS', or 'numpy:MS': MS of a processor, measured in processor
    time."""
    kind, ms = what.split(':')
    if kind == 'sleep':
        time.sleep(float(ms) / 1000)
        return
    a = numpy.ones((96, 96))
    until = time.thread_time() + float(ms) / 1000
    while time.thread_time() < until:
        a = numpy.tanh(a @ a)


class Photos:
    """A dataset by the protocol of torch.utils.data."""

    def __init__(self, folder, prep):
        self.paths = sorted(
            p for p in glob.glob(folder + '/**', recursive=True)
            if os.path.isfile(p))
        self.prep = prep

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with Image.open(self.paths[i]) as image:
            image = image.convert('RGB').resize((128, 128))
        work(self.prep)
        return numpy.asarray(image, dtype='float32') / 255


def orders(photos, batch):
    """Batches of indices, each epoch in another order."""
    while True:
        order = random.sample(range(len(photos)), len(photos))
        for i in range(0, len(order) - batch + 1, batch):
            yield order[i:i + batch]


def pool_batches(photos, a):
    """All threads prepare one batch, and wait while it is used."""
    with concurrent.futures.ThreadPoolExecutor(a.pool) as pool:
        for indices in orders(photos, a.batch):
            yield numpy.stack(list(pool.map(photos.__getitem__, indices)))


def feed_batches(photos, a):
    """Threads prepare ahead of their use."""
    todo, done = queue.Queue(2), queue.Queue(2)

    def feed():
        for indices in orders(photos, a.batch):
            todo.put(indices)

    def prepare():
        while True:
            done.put(numpy.stack([photos[i] for i in todo.get()]))
    for run in [feed] + a.feed * [prepare]:
        threading.Thread(target=run, daemon=True).start()
    while True:
        yield done.get()


def loader_batches(photos, a):
    """What the tutorial has."""
    import torch.utils.data
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        photos, batch_size=a.batch, shuffle=True, num_workers=a.workers,
        persistent_workers=a.persistent and a.workers > 0)
    while True:
        yield from loader


def main():
    """Train until killed."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('folder')
    p.add_argument('--workers', type=int, default=0)
    p.add_argument('--persistent', action='store_true')
    p.add_argument('--pool', type=int)
    p.add_argument('--feed', type=int)
    p.add_argument('--batch', type=int, default=16)
    p.add_argument('--prep', default='sleep:0')
    p.add_argument('--step', default='sleep:0')
    a = p.parse_args()
    photos = Photos(a.folder, a.prep)
    batches = pool_batches if a.pool else feed_batches if a.feed \
        else loader_batches
    for _ in batches(photos, a):
        work(a.step)


if __name__ == '__main__':
    main()
