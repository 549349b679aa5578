# SPDX-License-Identifier: MIT
"""A dataset, and hosts of a partitioned cache that mount it, for the tests of
peers."""
import math
import os
import random

from peer_hosts import (Cluster, Failed, origin_bytes, read_epoch, run, shards,
                        total, wait_for)


class Scene:
    """A dataset, and hosts that mount it."""

    def __init__(self, argv):
        self.refrain, self.reader, self.herd, self.work = argv[:4]
        self.source = os.path.join(self.work, 'src')
        self.sums = os.path.join(self.work, 'sums')
        self.files = {}
        self.cluster = None

    def make_files(self, count, least, most, seed=1):
        rng = random.Random(seed)
        for i in range(count):
            path = 'd%d/f%04d' % (i % 5, i)
            size = int(math.exp(rng.uniform(math.log(least),
                                            math.log(most + 1))))
            os.makedirs(os.path.join(self.source, 'd%d' % (i % 5)),
                        exist_ok=True)
            with open(os.path.join(self.source, path), 'wb') as f:
                f.write(rng.randbytes(size))
            self.files[path] = size
        run(self.reader, self.source, '--make-sums', self.sums)
        self.bytes = sum(self.files.values())

    def begin(self, hosts, mib, tier, *options, **engine):
        """Start new hosts with empty engines and tiers."""
        self.cluster = Cluster(self.refrain, self.work, self.source)
        for _ in range(hosts):
            self.cluster.add().start_engine(mib, **engine)
        self.mount(tier, *options)

    def mount(self, tier, *options, hosts=None):
        hosts = hosts or self.cluster.hosts
        names = [h.name for h in hosts]
        for h in hosts:
            h.start_mount(tier, *options, peers=names)
        for h in hosts:
            h.wait_mount(up=len(hosts))

    def unmount(self):
        for h in self.cluster.hosts:
            h.stop_mount()

    def end(self):
        self.unmount()
        for h in self.cluster.hosts:
            h.clear()
        self.cluster.close()
        self.cluster = None

    def epoch(self, seed, hosts=None):
        """Let all hosts read the dataset, divided anew. Return the bytes and
        reads from the origin, without those of units that were read to
        compare them."""
        hosts = hosts or self.cluster.hosts
        before = [h.status() for h in hosts]
        read_epoch(self.reader, self.cluster,
                   shards(self.files, len(hosts), seed), sums=self.sums)
        self.settle()
        return (origin_bytes(hosts, before),
                total(hosts, 'origin_reads', before) -
                total(hosts, 'peer_checks', before))

    def settle(self):
        """Wait until all pushes have been answered."""
        def quiet():
            # A unit that is being pushed is in staging.
            return not any(h.status()['staging_bytes']
                           for h in self.cluster.hosts if h.daemon)
        wait_for('the pushes end', quiet)

    def held(self):
        return total(self.cluster.hosts, 'peer_fill_bytes')


def expect_at_most(what, got, most):
    if got > most:
        raise Failed('%s: %s, more than %s' % (what, got, most))


def expect(what, got, want):
    if got != want:
        raise Failed('%s: %s, not %s' % (what, got, want))


def run_scenarios(argv, *scenarios):
    """Run the scenarios NAME ..., or all. argv is REFRAIN READER HERD WORK
    [NAME ...]. Return the exit status."""
    scene = Scene(argv)
    scene.make_files(300, 4096, 600 << 10)
    for f in scenarios:
        if argv[4:] and f.__name__ not in argv[4:]:
            continue
        try:
            f(scene)
            print('%s' % f.__name__, flush=True)
        except Failed as e:
            print('FAILED: %s: %s' % (f.__name__, e))
            if scene.cluster:
                scene.cluster.tell()
            return 1
        finally:
            if scene.cluster:
                scene.cluster.close()
    return 0
