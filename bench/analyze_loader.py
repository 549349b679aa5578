#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trainer of a stand-in model on a directory of directories of JPEGs, by
PyTorch's DataLoader with torchvision's transforms. With --prep-ms, or without
PyTorch, threads read the files instead, and sleep in place of preparing them:
their rates do not depend on what else the machine does. Batches come in order
either way. Endless, but for --samples.
"""
import argparse
import os
import queue
import random
import sys
import threading
import time

BATCH = 16


def torch_batches(folder, workers):
    """The number of samples of each batch."""
    import torch
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    files = datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
        transforms.ToTensor()]))
    loader = torch.utils.data.DataLoader(
        files, batch_size=BATCH, shuffle=True, num_workers=workers,
        drop_last=True, persistent_workers=workers > 0)
    while True:
        for images, _ in loader:
            yield len(images)


def prepare(path, prep_s):
    """Read one file. Zeros, as in the analyzer's tiny images, take no time."""
    with open(path, 'rb', buffering=0) as f:
        data = f.readall()
    if prep_s > 0 and any(data[len(data) // 2:]):
        time.sleep(prep_s)


def read_files(todo, prep_s):
    """One worker's thread."""
    while True:
        paths, done = todo.get()
        for path in paths:
            prepare(path, prep_s)
        done.set()


def plain_batches(folder, workers, prep_s):
    """The same with threads; two batches a worker are begun."""
    names = [os.path.join(d, f) for d, _, files in os.walk(folder)
             for f in files]
    todo, begun = queue.Queue(), queue.Queue(2 * workers - 1)
    for _ in range(workers):
        threading.Thread(target=read_files, args=(todo, prep_s),
                         daemon=True).start()

    def feed():
        while True:
            random.shuffle(names)
            for i in range(0, len(names) - BATCH + 1, BATCH):
                done = threading.Event()
                begun.put(done)
                todo.put((names[i:i + BATCH], done))
    threading.Thread(target=feed, daemon=True).start()
    while True:
        begun.queue[0].wait() if begun.queue else time.sleep(0.001)
        if begun.queue and begun.queue[0].is_set():
            begun.get()
            yield BATCH


def batches_of(a):
    """By the means that there are."""
    if a.prep_ms is None:
        try:
            import torchvision as _
            return torch_batches(a.folder, a.workers)
        except ImportError:
            pass
    return plain_batches(a.folder, a.workers, (a.prep_ms or 0) / 1000)


def main():
    """Read, step and log until killed."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('folder')
    p.add_argument('--workers', type=int, default=2)
    p.add_argument('--step-ms', type=float, default=0)
    p.add_argument('--prep-ms', type=float, help='for each sample')
    p.add_argument('--samples', type=int, help='end after so many')
    p.add_argument('--log', help='append CLOCK_MONOTONIC and the samples so '
                                 'far, each batch')
    a = p.parse_args()
    log = open(a.log, 'a', encoding='ascii') if a.log else None
    samples = 0
    for n in batches_of(a):
        samples += n
        if log:
            log.write('%.6f %d\n' % (time.monotonic(), samples))
            log.flush()
        time.sleep(a.step_ms / 1000)
        if a.samples and samples >= a.samples:
            break


if __name__ == '__main__':
    main()
