# SPDX-License-Identifier: MIT
"""The runs of bench/peers.sh, its tables and its bars."""
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEM = os.path.join(HERE, '..', 'tests', 'system')
sys.path.insert(0, SYSTEM)

from peer_hosts import (  # noqa: E402
    PORT, Cluster, Failed, inside, read_epoch, shards, total, wait_for)

MB = 1000000
MIB = 1 << 20
# memcached needs a page of 1 MiB for each size of chunks. That is little in a
# server of gigabytes, but much in one of 100 MB, so few sizes are used.
GROWTH = 4
SMALLEST = '64K'  # a tier that has room for almost nothing


def make(top, megabytes):
    """Files of 110 KB on average, as in ImageNet, 30 to 250 KB each."""
    rng = random.Random(1)
    left, i = megabytes * MB, 0
    while left > 0:
        size = min(left, int(min(250e3, max(30e3, rng.lognormvariate(
            11.45, 0.5)))))
        os.makedirs(os.path.join(top, 'd%03d' % (i // 100)), exist_ok=True)
        with open(os.path.join(top, 'd%03d/f%06d' % (i // 100, i)),
                  'wb') as f:
            f.write(rng.randbytes(size))
        left -= size
        i += 1


class Bench:
    def __init__(self, argv):
        (self.refrain, self.reader, self.work, self.source, self.group, rate,
         mbit, hosts, self.out, only) = argv
        self.rate, self.mbit = float(rate) * MB, float(mbit)
        self.counts = [int(n) for n in hosts.split()]
        self.only = only.split()
        self.files = {}
        for top, _, names in os.walk(self.source):
            for name in names:
                path = os.path.join(top, name)
                self.files[os.path.relpath(path, self.source)] = \
                    os.path.getsize(path)
        self.bytes = sum(self.files.values())
        self.sums = os.path.join(self.work, 'sums')
        subprocess.run([self.reader, os.path.join(self.work, 'data'),
                        '--make-sums', self.sums], check=True,
                       stdout=subprocess.DEVNULL)
        self.tiers = os.path.join('/dev/shm', 'refrain-peers-%d' % os.getpid())
        self.runs, self.bars, self.seed = [], [], 0
        self.cluster = None

    # -- Hosts ---------------------------------------------------------------

    def begin(self, hosts, mib, tier=SMALLEST, peers=True, mbit=None,
              mount=True):
        """mib: of each engine."""
        self.cluster = Cluster(self.refrain, self.work, self.source,
                               self.mbit if mbit is None else mbit,
                               cache=self.tiers)
        os.makedirs(self.tiers, exist_ok=True)
        for _ in range(hosts):
            h = self.cluster.add()
            if peers:
                h.start_engine(mib, growth=GROWTH)
        if mount:
            self.mount(tier, peers)

    def mount(self, tier=SMALLEST, peers=True):
        hosts = self.cluster.hosts
        names = [h.name for h in hosts]
        for h in hosts:
            h.start_mount(tier, peers=names if peers else None,
                          group=self.group)
        for h in hosts:
            h.wait_mount(up=len(hosts) if peers else None)

    def unmount(self):
        for h in self.cluster.hosts:
            h.stop_mount()

    def end(self):
        if not self.cluster:
            return
        for h in self.cluster.hosts:
            if h.daemon and h.daemon.poll() is None:
                h.stop_mount()
        for h in self.cluster.hosts:
            h.clear()
        self.cluster.close()
        self.cluster = None

    def engine_mib(self, hosts, share):
        """Of each, so that all hold that share of D: 0.96 of it is content."""
        return max(16, math.ceil(share * self.bytes / 0.94 / hosts / MIB))

    def settle(self):
        seen = None

        def quiet():
            nonlocal seen
            now = [[s[k] for k in ('peer_fills', 'peer_refused', 'peer_errors',
                                   'staging_bytes')]
                   for s in (h.status() for h in self.cluster.hosts)]
            same, seen = now == seen, now
            return same
        wait_for('the pushes end', quiet, 60)

    def epoch(self, what, parts=None, threads=16, act=None):
        """One epoch of all hosts, its parts dealt anew. `act` is called in the
        middle of one that the links limit."""
        hosts = self.cluster.hosts
        self.seed += 1
        parts = parts or shards(self.files, len(hosts), self.seed)
        with open('/proc/sys/vm/drop_caches', 'w') as f:
            f.write('3')
        before = [h.status() for h in hosts]
        timer = threading.Timer(0.4 * self.link_seconds(len(hosts)),
                                act) if act else None
        if timer:
            timer.start()
        seconds, said = read_epoch(self.reader, self.cluster, parts,
                                   threads=threads, sums=self.sums)
        if timer:
            timer.join()
        self.settle()
        run = {'what': what, 'hosts': len(hosts), 'seconds': seconds,
               'max_ms': max(s['max_ms'] for s in said),
               'bytes': sum(s['bytes'] for s in said)}
        for name in ('origin_bytes', 'origin_reads', 'hit_bytes',
                     'peer_hit_bytes', 'peer_fill_bytes', 'peer_refused',
                     'peer_bad', 'peer_errors', 'peer_dropped',
                     'peer_pushes_dropped'):
            run[name] = sum(h.status().get(name, 0) - s.get(name, 0)
                            for h, s in zip(hosts, before))
        self.runs.append(run)
        print('| %s | %d | %.2f | %.1f | %.1f | %.1f | %.1f | %.0f |' % (
            what, run['hosts'], seconds, run['bytes'] / seconds / MB,
            run['origin_bytes'] / MB, run['peer_hit_bytes'] / MB,
            run['hit_bytes'] / MB, run['max_ms']), flush=True)
        return run

    def link_seconds(self, n):
        """An epoch in which all bytes but 1/n come over links."""
        return self.bytes / n * (n - 1) / n / (self.mbit * MB / 8)

    def held(self):
        return total(self.cluster.hosts, 'peer_fill_bytes')

    def bar(self, what, got, bound, met):
        self.bars.append({'what': what, 'got': str(got), 'bar': str(bound),
                          'met': bool(met)})
        print('  bar: %s: %s (%s): %s' % (what, got, bound,
                                          'met' if met else 'NOT MET'),
              flush=True)

    # -- Scenes --------------------------------------------------------------

    def epochs(self):
        """Epoch 1 and reshuffled ones, beside the same without peers."""
        for n in self.counts:
            self.begin(n, self.engine_mib(n, 1.25))
            first = self.epoch('peers, epoch 1')
            later = [self.epoch('peers, epoch %d' % e) for e in (2, 3, 4)]
            clean = total(self.cluster.hosts, 'peer_dropped') + \
                total(self.cluster.hosts, 'peer_pushes_dropped')
            self.end()
            tier = '%d' % (self.engine_mib(n, 1.25) * MIB)
            self.begin(n, 0, tier, peers=False)
            self.epoch('a tier of the same size, epoch 1')
            for e in 2, 3:
                self.epoch('a tier of the same size, epoch %d' % e)
            self.end()
            self.begin(n, 0, SMALLEST, peers=False)
            bare = self.epoch('neither')
            self.end()
            if n == max(self.counts):
                self.epoch_bars(n, first, later, bare, clean)

    def epoch_bars(self, n, first, later, bare, clean):
        self.bar('epoch 1: origin bytes - D', first['origin_bytes'] -
                 self.bytes, '0', first['origin_bytes'] == self.bytes)
        self.bar('epoch 1: time / (D/S)', '%.3f' % (
            first['seconds'] * self.rate / self.bytes), '1.1',
            first['seconds'] <= 1.1 * self.bytes / self.rate)
        self.bar('pushes dropped', clean, '0', clean == 0)
        sums = [sum(r[k] for r in later)
                for k in ('origin_bytes', 'origin_reads')]
        self.bar('epochs 2 to 4: origin bytes and requests', sums, '0, 0',
                 sums == [0, 0])
        seconds = statistics.median(r['seconds'] for r in later)
        bound = self.link_seconds(n)
        self.bar('epochs 2 to 4: time / the bound of the link', '%.2f' % (
            seconds / bound), '1.3', seconds <= 1.3 * bound)
        self.bar('epochs 2 to 4: times as fast as neither', '%.1f' % (
            bare['seconds'] / seconds), '5', bare['seconds'] >= 5 * seconds)

    def herd(self):
        """8 readers on each of 3 hosts, all on the same cold files."""
        self.begin(3, self.engine_mib(3, 1.25))
        some = sorted(self.files)[:1000]
        size = sum(self.files[f] for f in some)
        got = self.epoch('herd of 3 x 8', [some] * 3, threads=8)
        self.bar('herd: origin bytes - size', got['origin_bytes'] - size, '0',
                 got['origin_bytes'] == size)
        self.end()

    def small(self):
        """Engines of 0.6 D; then tiers of 0.2 D a host beside them."""
        self.begin(3, max(8, int(0.6 * self.bytes / 3 / MIB)))
        self.epoch('engine of 0.6 D, epoch 1')
        off, refused, sent = [], 0, 0
        for e in 2, 3, 4:
            left = self.bytes - self.held()
            run = self.epoch('engine of 0.6 D, epoch %d' % e)
            off.append(run['origin_bytes'] / left - 1)
            refused += run['peer_refused'] * min(
                256 << 10, self.bytes / len(self.files))
            sent += run['seconds'] * self.mbit * MB / 8 * 3
        self.bar('0.6 D: E / D', '%.3f' % (1 - left / self.bytes), '-', True)
        self.bar('0.6 D: origin bytes / (D - E) - 1', ', '.join(
            '%+.4f' % x for x in off), '0.01', max(map(abs, off)) <= 0.01)
        evicted = sum(p['evictions']
                      for p in self.cluster.hosts[0].status()['peers'])
        self.bar('0.6 D: evictions of the engine', evicted, '0', evicted == 0)
        self.bar('0.6 D: refused pushes / link', '%.4f' % (refused / sent),
                 '0.02', refused < 0.02 * sent)
        self.unmount()
        for h in self.cluster.hosts:
            h.clear()
        self.mount('%d' % (0.2 * self.bytes))
        self.epoch('and tiers of 0.2 D, first')
        kept = total(self.cluster.hosts, 'resident_bytes')
        got = self.epoch('and tiers of 0.2 D, then')
        want = left - kept / 3
        # Each item of a tier is read by its host with probability 1/3.
        mean = sum(s * s for s in self.files.values()) / self.bytes
        sd = math.sqrt(kept * mean * 2 / 9)
        sigmas = (got['origin_bytes'] - want) / sd if sd else 0
        self.bar('0.6 D and tiers: standard deviations from D - E - tiers/N',
                 '%+.1f (tiers hold %.1f MB)' % (sigmas, kept / MB), '4',
                 abs(sigmas) <= 4)
        self.end()

    def victim_share(self, host):
        return sum(p['fill_bytes'] for h in self.cluster.hosts
                   for p in h.status()['peers'] if p['host'] == host.name)

    def origin_p99_ms(self):
        """Of the origin alone: of a file, as long as 16 readers queue at it."""
        slow = [r['max_ms'] for r in self.runs if r['what'] == 'neither']
        return max(slow) if slow else 2000.0

    def faults(self):
        """A peer that is killed, stopped, cut off or slow in mid-epoch."""
        self.begin(3, self.engine_mib(3, 1.25))
        self.epoch('before faults')
        victim = self.cluster.hosts[1]
        share = self.victim_share(victim)
        alone = self.origin_p99_ms()

        def check(what, run):
            over = run['max_ms'] - alone
            self.bar('%s: the slowest read' % what, '%.0f ms' % run['max_ms'],
                     '750 ms + %.0f of the origin' % alone, over <= 750)
        check('kill -9', self.epoch('killed in mid-epoch',
                                    act=victim.kill_engine))
        victim.start_engine(self.engine_mib(3, 1.25), growth=GROWTH)
        begin = time.monotonic()
        wait_for('it is used again', lambda: all(
            p['state'] == 'up' for h in self.cluster.hosts
            for p in h.status()['peers']), 30)
        back = time.monotonic() - begin
        self.bar('restarted: used again after', '%.1f s' % back, '5 s',
                 back <= 5)
        again = self.epoch('restarted empty, first')['origin_bytes']
        then = self.epoch('restarted empty, then')['origin_bytes']
        self.bar('restarted: origin bytes / its share, then bytes',
                 '%.4f, %d' % (again / share if share else 0, then), '1, 0',
                 again == share and then == 0)
        for what, begin, end in (
                ('SIGSTOP',
                 lambda: victim.engine.send_signal(signal.SIGSTOP),
                 lambda: victim.engine.send_signal(signal.SIGCONT)),
                ('packets dropped', victim.drop_packets,
                 lambda: victim.set_rate(self.mbit)),
                ('1 Mbit/s', lambda: victim.set_rate(1),
                 lambda: victim.set_rate(self.mbit))):
            self.one_fault(what, begin, end, victim, check)
        self.end()

    def one_fault(self, what, begin, end, victim, check):
        """The victim's own reads are not looked at: its link is the fault."""
        parts = shards(self.files, 3, self.seed + 1)
        if what != 'SIGSTOP':
            parts[victim.number - 1] = parts[victim.number - 1][:1]
        try:
            check(what, self.epoch(what, parts, act=begin))
        except subprocess.CalledProcessError as e:
            print('  %s: not measured: %s' % (what, e))
        end()
        wait_for('it is used again', lambda: all(
            p['state'] == 'up' for h in self.cluster.hosts
            for p in h.status()['peers']), 30)

    def damaged(self):
        """A proxy damages, swaps or cuts 1 % of the values of one host."""
        log = os.path.join(self.work, 'damaged')
        self.begin(3, self.engine_mib(3, 1.25), mount=False)
        victim = self.cluster.hosts[2]
        victim.kill_engine()
        victim.start_engine(self.engine_mib(3, 1.25), port=PORT + 1,
                            growth=GROWTH)
        proxy = victim.start([sys.executable,
                              os.path.join(SYSTEM, 'peer_proxy.py'), victim.ip,
                              str(PORT), str(PORT + 1), '100', log])
        victim.wait_port(proxy, PORT)
        self.mount()
        bad = sum(self.epoch('1 in 100 damaged, epoch %d' % e)['peer_bad']
                  for e in (1, 2, 3))
        with open(log) as f:
            done = len(f.readlines())
        self.bar('peer_bad - damaged values (of %d)' % done, bad - done, '0',
                 bad == done > 0)
        proxy.kill()
        proxy.wait()
        self.end()

    def changing(self):
        """3 -> 4 -> 3 hosts, five times, with 1.3 D for the smaller set."""
        mib = self.engine_mib(3, 1.3)
        self.begin(3, mib)
        self.epoch('3 hosts, epoch 1')
        up, down = [], []
        fourth = None
        for _ in range(1 if os.environ.get('QUICK') else 5):
            self.unmount()
            if fourth:
                self.cluster.hosts.append(fourth)
            else:
                fourth = self.cluster.add()
            fourth.start_engine(mib, growth=GROWTH)
            self.mount()
            up.append(self.epoch('4 hosts')['origin_bytes'])
            self.unmount()
            fourth.kill_engine()
            self.cluster.hosts.remove(fourth)
            self.mount()
            down.append(self.epoch('3 hosts again')['origin_bytes'])
        self.cluster.hosts.append(fourth)
        self.bar('3 -> 4: origin bytes / D', ', '.join(
            '%.3f' % (b / self.bytes) for b in up), '%.3f' % (1.1 / 4),
            max(up) <= 1.1 * self.bytes / 4)
        self.bar('4 -> 3: origin bytes / D', ', '.join(
            '%.3f' % (b / self.bytes) for b in down), '%.3f' % (1.1 / 3),
            max(down) <= 1.1 * self.bytes / 3)
        self.end()

    def refused(self):
        """Settings that could lose items."""
        ext = os.path.join(self.work, 'ext')
        for settings, word in (
                ({'never_evict': False}, '-M'),
                ({'options': 'slab_reassign'}, 'no_slab_reassign'),
                ({'options': 'no_slab_reassign,ext_path=%s:64m' % ext},
                 'ext_path')):
            self.begin(1, 64, mount=False)
            h = self.cluster.hosts[0]
            h.kill_engine()
            h.start_engine(64, **settings)
            p = subprocess.run(inside(h.ns, self.refrain, 'peers', h.name),
                               stdout=subprocess.PIPE, check=False)
            said = p.stdout.decode()
            self.bar('refused, with advice about %s' % word, said.splitlines()
                     [-1][:60], 'refused', p.returncode == 1 and
                     'refused' in said and word in said)
            self.end()

    def gets(self):
        """The client of the peers beside a bare one, without limits."""
        self.begin(1, 256, mount=False)
        h = self.cluster.hosts[0]
        p = subprocess.run(inside(h.ns, os.path.join(
            os.path.dirname(self.reader), 'peer-gets'), h.name),
            stdout=subprocess.PIPE, check=True)
        lines = p.stdout.decode().splitlines()
        print('\n'.join('  ' + line for line in lines))
        ratio = float(lines[-1].split()[-1])
        self.bar('gets, to a bare pipelined client', '%.3f' % ratio, '0.8',
                 ratio >= 0.8)
        self.end()

    def run(self):
        print('| what | hosts | s | MB/s | origin MB | peers MB | tiers MB | '
              'slowest file ms |')
        print('|---|---|---|---|---|---|---|---|')
        for scene in (self.epochs, self.herd, self.small, self.faults,
                      self.damaged, self.changing, self.refused, self.gets):
            if self.only and scene.__name__ not in self.only:
                continue
            try:
                scene()
            except (Failed, subprocess.CalledProcessError) as e:
                self.bar(scene.__name__, e, 'no failure', False)
                if self.cluster:
                    self.cluster.tell()
            finally:
                self.end()
        os.path.isdir(self.tiers) and os.rmdir(self.tiers)
        print('\n| bar | measured | bar | |\n|---|---|---|---|')
        for b in self.bars:
            print('| %s | %s | %s | %s |' % (b['what'], b['got'], b['bar'],
                                             'met' if b['met'] else 'not met'))
        with open(self.out, 'w') as f:
            json.dump({'bytes': self.bytes, 'rate': self.rate,
                       'mbit': self.mbit, 'runs': self.runs,
                       'bars': self.bars}, f, indent=1)
        return not all(b['met'] for b in self.bars)


if __name__ == '__main__':
    if sys.argv[1] == 'make':
        make(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(Bench(sys.argv[2:]).run())
