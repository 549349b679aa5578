#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the trainers of bench/epoch.sh read, and what is to be expected of them.

Four shapes have sizes and step times like those of MLPerf Storage, whose name
they do not claim: files of a mean size, one a sample, and steps of whole
milliseconds. A record of 3D U-Net is a 32nd as large and its step takes half
as long; CosmoFlow's batch is two, as its step takes 3.5 ms.

    epoch_shapes.py SHAPE MB              the number of files of about MB
    epoch_shapes.py < bench-epoch.json    a table: measured, and expected
"""
import json
import math
import sys


class Shape:
    """Bytes of a file (0: as they are), files a step, milliseconds a step."""

    def __init__(self, file_bytes, batch, step_ms, reads_ahead=64,
                 trainer_mib=40, least=0, staging_mib=16):
        self.file_bytes, self.batch, self.step_ms = file_bytes, batch, step_ms
        self.reads_ahead, self.trainer_mib = reads_ahead, trainer_mib
        self.least = least      # utilisation that MLPerf Storage requires
        self.staging_mib = staging_mib  # of the mount

    def files(self, total):
        """As many as make whole steps and about `total` bytes."""
        return max(round(total / self.file_bytes / self.batch), 1) * self.batch


SHAPES = {
    'plain': Shape(200 << 10, 32, 32),
    'photos': Shape(0, 32, 32),
    'resnet50': Shape(114660, 400, 224, 200, 160, 0.9),
    'unet3d': Shape(146600628 // 32, 7, 162, 14, 160, 0.9, 64),
    'cosmoflow': Shape(2828486, 2, 7, 16, 128, 0.7, 64),
    'retinanet': Shape(322957, 24, 48, 64, 96, 0.85),
}


def random_misses(cached):
    """Of a cache that replaces anything, as the page cache does; model.h."""
    low, high = 0.0, 1.0
    while cached < 1 and high - low > 1e-9:
        m = (low + high) / 2
        seen = -math.expm1(-m / cached) * cached / m if cached > 0 else 0
        low, high = (m, high) if 1 - m > seen * seen else (low, m)
    return low


def lru_misses(cached):
    """Of one that replaces what was not used for longest."""
    return 0 if cached >= 1 else (1 - cached) * (1 - math.log1p(-cached))


def stall(misses, speed):
    """The share of an epoch in which a trainer waits that fetches while it
    steps, from a source of `speed` times what it takes."""
    return 1 - 1 / max(1, misses / speed)


def expected(run):
    """Misses by the policy's formula, of the share that was cached."""
    if run['contender'] == 'page-cache':
        return random_misses(run['cached'])
    return 1 - run['cached']


def table(bench):
    """Of the epochs after the first."""
    print('| c | cache | cached | fetched | by formula | LRU | stall | by '
          'formula | LRU | utilisation |\n|' + '---|' * 10)
    for r in bench['runs']:
        misses, lru = expected(r), lru_misses(r['cached'])
        print('| %g | %s | %.3f | %.3f | %.3f | %.3f | %.1f %% | %.1f %% | '
              '%.1f %% | %.3f |' % (
                  r['share'], r['contender'], r['cached'],
                  r['epoch_bytes'] / bench['bytes'], misses, lru,
                  100 * r['stall'], 100 * stall(misses, r['speed']),
                  100 * stall(lru, r['speed']), r['utilisation']))


if __name__ == '__main__':
    if len(sys.argv) > 1:
        print(SHAPES[sys.argv[1]].files(1e6 * int(sys.argv[2])))
    else:
        table(json.load(sys.stdin))
