# SPDX-License-Identifier: MIT
"""Scenarios of peers.sh; usage: peers.py REFRAIN READER HERD WORK [SCENARIO ...]"""
import math
import sys

from peer_hosts import Failed, read_epoch, run, total, wait_for
from peer_scene import expect, run_scenarios

MIB = 1 << 20


def expect_clean(scene):
    for name in 'peer_bad', 'peer_errors', 'peer_dropped', \
            'peer_pushes_dropped', 'evictions', 'origin_errors':
        expect(name, total(scene.cluster.hosts, name), 0)


def large_engine(scene):
    """Each byte leaves the origin once; later epochs read nothing from it."""
    scene.begin(3, 64, '1M')
    expect('epoch 1', scene.epoch(1)[0], scene.bytes)
    for seed in 2, 3:
        expect('epoch %d' % seed, scene.epoch(seed), (0, 0))
    expect_clean(scene)
    wait_for('the hosts know that their peers hold all', lambda: total(
        scene.cluster.hosts, 'peers_hold_all') == 3)
    expect('held', scene.held(), scene.bytes)
    # A new mount of every host, with a list in another order.
    scene.unmount()
    scene.cluster.hosts.reverse()
    scene.mount('1M')
    expect('after a remount', scene.epoch(4), (0, 0))
    scene.end()


def stampede(scene):
    """All hosts read the same cold files at once."""
    scene.begin(3, 64, '1M')
    before = [h.status() for h in scene.cluster.hosts]
    everything = [sorted(scene.files)] * 3
    read_epoch(scene.reader, scene.cluster, everything, sums=scene.sums)
    scene.settle()
    expect('bytes', total(scene.cluster.hosts, 'origin_bytes', before),
           scene.bytes)
    expect_clean(scene)
    scene.end()


def small_engine(scene):
    """An engine of 0.6 D: D - E each epoch. Then tiers help, each its host."""
    # Each size of chunks takes a page of 1 MiB: few sizes.
    mib = math.ceil(scene.bytes * 0.6 / 3 / MIB) + 2
    scene.begin(3, mib, '64K', growth=6)
    scene.epoch(1)
    left = scene.bytes - scene.held()
    if not 0.2 < left / scene.bytes < 0.7:
        raise Failed('%d of %d bytes are held' % (scene.held(), scene.bytes))
    for seed in 2, 3:
        left = scene.bytes - scene.held()
        got = scene.epoch(seed)[0]
        if not 0.97 * left <= got <= 1.01 * left:  # tiers keep 64K
            raise Failed('epoch %d: %d bytes, D - E is %d' %
                         (seed, got, left))
    expect('evictions', sum(p['evictions'] for p in
                            scene.cluster.hosts[0].status()['peers']), 0)
    expect('tiers', total(scene.cluster.hosts, 'peers_hold_all'), 0)
    # The tiers take what is refused, and only that.
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
    """3 -> 4 hosts moves a quarter of the items."""
    scene.begin(3, 64, '64K')
    scene.epoch(1)
    scene.cluster.add().start_engine(64)
    scene.unmount()
    # What a tier has, its host would not give to the new owner.
    for h in scene.cluster.hosts:
        h.clear()
    scene.mount('64K')
    got = scene.epoch(2)[0]
    # Chance gives each file a new owner or not, and some files are large.
    squares = sum(size * size for size in scene.files.values())
    most = scene.bytes / 4 + 4 * math.sqrt(3 / 16 * squares)
    if not 0 < got < most:
        raise Failed('with a fourth host: %d of %d bytes, at most %d' %
                     (got, scene.bytes, most))
    expect('then', scene.epoch(3), (0, 0))
    scene.end()


def other_path(scene):
    """Hosts with copies at other paths share by the name of the dataset."""
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
        expect('origin of the first', first.status()['origin_bytes'],
               scene.bytes)
        expect('origin of the second', second.status()['origin_bytes'],
               costs)
        scene.unmount()
    scene.end()


if __name__ == '__main__':
    sys.exit(run_scenarios(sys.argv[1:], large_engine, stampede, small_engine,
                           another_host, other_path))
