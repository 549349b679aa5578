# SPDX-License-Identifier: MIT
"""Scenarios of peers-epochs.sh.

peers_epochs.py REFRAIN READER HERD WORK [SCENARIO ...]"""
import math
import os
import random
import shutil
import sys

from peer_hosts import (Failed, origin_bytes, read_epoch, run, shards, total,
                        wait_for)
from peer_scene import expect, expect_at_most, run_scenarios

MIB = 1 << 20
# Number of units of each other mount that a mount compares with the origin.
COMPARED = 4


def expect_clean(scene):
    for name in 'peer_bad', 'peer_errors', 'peer_dropped', \
            'peer_pushes_dropped', 'evictions', 'origin_errors':
        expect(name, total(scene.cluster.hosts, name), 0)


def large_engine(scene):
    """Check that each byte leaves the origin once, and that later epochs
    read nothing from it."""
    scene.begin(3, 64, '1M')
    expect('epoch 1', scene.epoch(1)[0], scene.bytes)
    for seed in 2, 3:
        expect('epoch %d' % seed, scene.epoch(seed), (0, 0))
    expect_clean(scene)
    expect_at_most('compared', total(scene.cluster.hosts, 'peer_checks'),
                   3 * 2 * COMPARED)
    wait_for('the hosts know that their peers hold all', lambda: total(
        scene.cluster.hosts, 'peers_hold_all') == 3)
    expect('held', scene.held(), scene.bytes)
    # Mount again on every host, with the list of hosts in another order.
    scene.unmount()
    scene.cluster.hosts.reverse()
    scene.mount('1M')
    expect('after a remount', scene.epoch(4), (0, 0))
    expect_at_most('compared', total(scene.cluster.hosts, 'peer_checks'),
                   3 * 3 * COMPARED)
    scene.end()


def stampede(scene):
    """Let all hosts read the same files at once, which are not cached."""
    scene.begin(3, 64, '1M')
    before = [h.status() for h in scene.cluster.hosts]
    everything = [sorted(scene.files)] * 3
    read_epoch(scene.reader, scene.cluster, everything, sums=scene.sums)
    scene.settle()
    # A read waits 650 ms for the comparison of a unit, then reads from the
    # origin. On a busy machine a few items of the first moments are read twice.
    got = origin_bytes(scene.cluster.hosts, before)
    if not scene.bytes <= got <= 1.01 * scene.bytes:
        raise Failed('bytes: %d, not %d' % (got, scene.bytes))
    expect_clean(scene)
    scene.end()


def small_engine(scene):
    """With engines E of 0.6 of the dataset D, each epoch reads D - E from
    the origin. Then tiers help, each its own host."""
    # Each size of chunks takes a page of 1 MiB, and there are few sizes.
    mib = math.ceil(scene.bytes * 0.6 / 3 / MIB) + 2
    scene.begin(3, mib, '64K', growth=6)
    scene.epoch(1)
    left = scene.bytes - scene.held()
    if not 0.2 < left / scene.bytes < 0.7:
        raise Failed('%d of %d bytes are held' % (scene.held(), scene.bytes))
    for seed in 2, 3:
        left = scene.bytes - scene.held()
        got = scene.epoch(seed)[0]
        if not 0.97 * left <= got <= 1.01 * left:  # the tiers have 64K
            raise Failed('epoch %d: %d bytes, D - E is %d' %
                         (seed, got, left))
    expect('evictions', sum(p['evictions'] for p in
                            scene.cluster.hosts[0].status()['peers']), 0)
    expect('tiers', total(scene.cluster.hosts, 'peers_hold_all'), 0)
    # The tiers store only what the peers refuse.
    scene.unmount()
    for h in scene.cluster.hosts:
        h.clear()
    scene.mount('%d' % (scene.bytes // 5))
    scene.epoch(4)
    kept = total(scene.cluster.hosts, 'resident_bytes')
    if kept == 0 or kept > left * 3:
        raise Failed('%d bytes in tiers, %d were refused' % (kept, left))
    got, want = scene.epoch(5)[0], left - kept / 3
    mean = scene.bytes / len(scene.files)
    margin = 4 * math.sqrt(3 * len(scene.files)) * mean
    if abs(got - want) > margin:
        raise Failed('with tiers: %d bytes, not %d +- %d' %
                     (got, want, margin))
    scene.end()


def another_host(scene):
    """Check that a fourth host takes over a quarter of the items."""
    scene.begin(3, 64, '64K')
    scene.epoch(1)
    scene.cluster.add().start_engine(64)
    scene.unmount()
    # A host does not push items of its tier to the new owner, so clear the
    # tiers.
    for h in scene.cluster.hosts:
        h.clear()
    scene.mount('64K')
    got = scene.epoch(2)[0]
    # Which files get a new owner is random, and some files are large.
    squares = sum(size * size for size in scene.files.values())
    most = scene.bytes / 4 + 4 * math.sqrt(3 / 16 * squares)
    if not 0 < got < most:
        raise Failed('with a fourth host: %d of %d bytes, at most %d' %
                     (got, scene.bytes, most))
    expect('then', scene.epoch(3), (0, 0))
    scene.end()


def other_path(scene):
    """Check that hosts with copies at other paths share by the name of the
    dataset."""
    scene.begin(2, 128, '1M')
    scene.unmount()
    first, second = scene.cluster.hosts
    copy = scene.source + '-copy'
    run('cp', '-a', scene.source, copy)
    for options, costs in ((), scene.bytes), (('--peer-dataset', 'x'), 0):
        for h in scene.cluster.hosts:
            h.clear()
            h.start_mount('1M', *options, peers=[first.name, second.name],
                          source=copy if h is second else None)
        for h in scene.cluster.hosts:
            h.wait_mount(up=2)
        read_epoch(scene.reader, scene.cluster, [scene.files, []],
                   sums=scene.sums)
        scene.settle()
        read_epoch(scene.reader, scene.cluster, [[], scene.files],
                   sums=scene.sums)
        expect('origin of the first', origin_bytes([first]), scene.bytes)
        expect('origin of the second', origin_bytes([second]), costs)
        scene.unmount()
    scene.end()


def other_bytes(path):
    """Copy the tree with other bytes, but the same names, sizes and times."""
    copy = path + '-other'
    shutil.copytree(path, copy)
    rng = random.Random(7)
    for top, _, names in os.walk(copy):
        for name in names:
            at = os.path.join(top, name)
            was = os.stat(at)
            with open(at, 'wb') as f:
                f.write(rng.randbytes(was.st_size))
            os.utime(at, ns=(was.st_atime_ns, was.st_mtime_ns))
    shutil.copystat(path, copy)
    return copy


def read_part(scene, names, sums):
    """Let all hosts read these files, divided among them, and compare the
    sums."""
    read_epoch(scene.reader, scene.cluster,
               shards(names, len(scene.cluster.hosts), 1), sums=sums)
    scene.settle()


def two_sets(scene):
    """Use two datasets at one path, which differ only in their bytes, one
    after the other. The second must never get bytes of the first, and the
    first must find its own again."""
    copy = other_bytes(scene.source)
    sums = scene.sums + '-other'
    run(scene.reader, copy, '--make-sums', sums)
    everything = sorted(scene.files)
    for part, order in (everything, (scene.sums, sums)), \
            (everything[::2], (sums, scene.sums)):
        if order[0] == sums:
            swap(scene.source, copy)
        scene.begin(3, 64, '64K')
        hosts = scene.cluster.hosts
        read_part(scene, part, order[0])
        another_set(scene, copy)
        read_part(scene, everything, order[1])
        expect('units of the other set', total(hosts, 'peer_hits'), 0)
        expect('damaged units', total(hosts, 'peer_bad'), 0)
        wait_for('all know it', lambda: total(hosts, 'peers_differ') == 3)
        wait_for('the comparisons end',
                 lambda: origin_bytes(hosts) == scene.bytes)
        for h in hosts:
            if not any('another dataset' in s for s in h.status()['limits']):
                raise Failed('host %d: %s' % (h.number, h.status()['limits']))
            with open(h.errors, encoding='utf-8', errors='replace') as f:
                if 'a mount of another dataset' not in f.read():
                    raise Failed('host %d: no line in the log' % h.number)
        another_set(scene, copy)
        read_part(scene, part, order[0])
        if part == everything:
            expect('origin of the first set', origin_bytes(hosts), 0)
        elif total(hosts, 'peer_hits') < len(part) / 2:
            raise Failed('%d hits' % total(hosts, 'peer_hits'))
        read_part(scene, everything, order[0])
        scene.end()
    swap(scene.source, copy)


def swap(one, other):
    os.rename(one, one + '-now')
    os.rename(other, one)
    os.rename(one + '-now', other)


def another_set(scene, copy):
    """Put the other dataset at the path of the source, and clear the tiers."""
    scene.unmount()
    for h in scene.cluster.hosts:
        h.clear()
    swap(scene.source, copy)
    scene.mount('64K')


if __name__ == '__main__':
    sys.exit(run_scenarios(sys.argv[1:], large_engine, stampede, small_engine,
                           another_host, other_path, two_sets))
