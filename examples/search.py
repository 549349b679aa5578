#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Search for a learning rate: one job for each rate trains a softmax classifier
on a directory of JPEGs, all at the same time. In a first round each job reads
and decodes by itself, in a second one all jobs share their batches. Prints a
table of both.

    examples/search.py TRAIN TEST [--rates 0.01 0.1 1 10] [--epochs 2]
                       [--batch 64] [--size 16] [--echo 1] [--threads 2]

TRAIN and TEST have a directory of images for each class. A rate gets the same
batches in both rounds, and so the same accuracy. Train again with the best rate
and another --seed. NumPy is required.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

import refrain

MOMENTUM = 0.9


class Softmax:
    """One layer, trained by gradient descent."""

    def __init__(self, inputs, classes):
        self.weights = np.zeros((inputs + 1, classes), np.float32)
        self.speed = np.zeros_like(self.weights)

    @staticmethod
    def _inputs(images):
        """A row for each image, with a 1 for the bias. Creates a new array,
        because shared images are read-only."""
        rows = images.reshape(len(images), -1)
        return np.hstack([rows, np.ones((len(rows), 1), np.float32)])

    def step(self, images, labels, rate):
        """One step of gradient descent."""
        inputs = self._inputs(images)
        scores = inputs @ self.weights
        odds = np.exp(scores - scores.max(1, keepdims=True))
        odds /= odds.sum(1, keepdims=True)
        odds[np.arange(len(labels)), labels] -= 1
        self.speed *= MOMENTUM
        self.speed -= rate / inputs.size * (inputs.T @ odds)
        self.weights += self.speed

    def hits(self, images, labels):
        """Number of images that are classified correctly."""
        return int(((self._inputs(images) @ self.weights).argmax(1) ==
                    labels).sum())


def train(a, model):
    """Train; returns (seconds, images, decodes)."""
    more = {'share': a.share, 'share_jobs': len(a.rates)} if a.share else {}
    images, begun = 0, time.monotonic()
    with refrain.Loader(a.train, batch=a.batch, size=a.size, type='f32',
                        area_min=0.5, seed=a.seed, epochs=a.epochs,
                        echo=a.echo, threads=a.threads, **more) as loader:
        for _ in range(a.epochs):
            for batch in loader:
                model.step(batch.data, batch.labels, a.trial)
                images += len(batch)
                del batch
        return time.monotonic() - begun, images, loader.stats()['decodes']


def accuracy(a, model):
    """Accuracy on the test images. Evaluation does not share batches."""
    hits = count = 0
    with refrain.Loader(a.test, batch=a.batch, size=a.size, type='f32',
                        augment='eval', in_order=True, epochs=1,
                        threads=1) as loader:
        for batch in loader:
            hits += model.hits(batch.data, batch.labels)
            count += len(batch)
            del batch
    return hits / count


def trial(a):
    """One job: train with one rate, and print the result."""
    with refrain.Loader(a.train, batch=1, size=8) as loader:
        classes = len(loader.classes)
    model = Softmax(a.size * a.size * 3, classes)
    seconds, images, decodes = train(a, model)
    print(json.dumps({'rate': a.trial, 'seconds': seconds, 'images': images,
                      'decodes': decodes, 'accuracy': accuracy(a, model)}))


def processor_s():
    """Processor time of all jobs so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def search(a, *more):
    """Run all jobs at once: (results, seconds, processor seconds)."""
    begun, used = time.monotonic(), processor_s()
    command = [sys.executable, __file__, *sys.argv[1:], *more, '--trial']
    one = dict(os.environ, OMP_NUM_THREADS='1')     # for NumPy
    jobs = [subprocess.Popen([*command, str(rate)], stdout=subprocess.PIPE,
                             env=one) for rate in a.rates]
    results = [json.loads(job.communicate()[0] or '{}') for job in jobs]
    if any(job.returncode for job in jobs):
        sys.exit('search: a job has failed')
    return results, time.monotonic() - begun, processor_s() - used


def print_way(name, results, seconds, used):
    """Print the rows of one round."""
    for r in results:
        print('%-7s %8g %8.1f %% %9.1f %10.0f %9d' % (
            name, r['rate'], 100 * r['accuracy'], r['seconds'],
            r['images'] / r['seconds'], r['decodes']))
    print('%-7s %8s %10s %9.1f %10.0f %9d %12.1f' % (
        name, 'all', '', seconds,
        sum(r['images'] / r['seconds'] for r in results),
        sum(r['decodes'] for r in results), used))


def arguments():
    """Parse the command line."""
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('train')
    p.add_argument('test')
    p.add_argument('--rates', type=float, nargs='*',
                   default=[0.01, 0.1, 1, 10])
    p.add_argument('--epochs', type=int, default=2)
    p.add_argument('--batch', type=int, default=64)
    p.add_argument('--size', type=int, default=16)
    p.add_argument('--echo', default='1')
    p.add_argument('--threads', type=int, default=2)
    p.add_argument('--seed', type=int, default=0)
    p.add_argument('--share', help=argparse.SUPPRESS)
    p.add_argument('--trial', type=float, help=argparse.SUPPRESS)
    return p.parse_args()


def main():
    """Run both rounds and print the table."""
    a = arguments()
    if a.trial is not None:
        return trial(a)
    apart = search(a)
    shared = search(a, '--share', 'search-%d' % os.getpid())
    print('%-7s %8s %10s %9s %10s %9s %12s' % (
        'jobs', 'rate', 'accuracy', 'seconds', 'images/s', 'decodes',
        'processor s'))
    print_way('apart', *apart)
    print_way('shared', *shared)
    best = max(shared[0], key=lambda r: r['accuracy'])
    print('best: %g' % best['rate'])
    return None


if __name__ == '__main__':
    main()
