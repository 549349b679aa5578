#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cells of bench/analyze.sh: what `refrain analyze` predicts for a trainer
and a source, beside the same trainer over a mount with a cache of that size.

One analysis a trainer and source predicts all sizes. The truth of a size is a
separate mount whose cache has that size, which is filled before the trainer
starts; nothing is hidden or replaced. It has --analysis, so that each read is
counted; the kernel keeps pages of what hits, as in any mount. All truths are
measured before the analysis, and again after it in reverse order: a machine
that gets slower or faster meanwhile changes both sides alike. `repeats` is by
how much the two differ; where that is more than REPEATS, the truth is measured
once more, the middle counts, and the cell is marked with ~. `speed` is that of
the processors while the truth was measured, over that during the analysis.
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import zlib

REPEATS = 0.02
SKIP_S = 4          # time until a trainer reads at a steady rate
START_S = 60
BEST, WORST, MEDIAN = 0.04, 0.08, 0.02
BEST_SHARE, INSIDE_SHARE = 34 / 40, 36 / 40
ROOM = 4096 + 512   # what a tier charges for an item besides its size, at most


def command(trainer, top, a):
    """Its words; the images are in train/ of `top`."""
    here = os.path.dirname(os.path.abspath(__file__))
    train = os.path.join(top, 'train')
    if trainer[:2] in ('dl', 'sl'):
        words = [a.python, os.path.join(here, 'analyze_loader.py'), train,
                 '--workers', trainer[2:], '--step-ms',
                 '20' if trainer[0] == 's' else str(a.step_ms), '--log',
                 os.path.join(a.work, 'log')]
        return words + (['--prep-ms', '8'] if trainer[0] == 's' else [])
    if trainer == 'load':
        return [a.refrain, 'load', train, '--batch', '16', '--echo', '1',
                '--epochs', '1000000', '--threads', '2', '--step-ms', '15',
                '--no-hash']
    if trainer == 'cnn':
        return [os.path.join(os.path.dirname(a.refrain),
                             'experiments/echo-train'),
                '--epochs', '100000', '--batch', '16', '--threads', '2',
                '--width', '4', '--size', '32', '--echo', '1', train]
    sys.exit('analyze.py: unknown trainer: ' + trainer)


class Speed:
    """How fast the processors are: the processor time of the same piece of
    work, ten times a second. Virtual machines differ by a third within a
    minute, whatever runs on them."""

    def __init__(self):
        self.data = random.Random(1).randbytes(1 << 16)
        self.seen = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            began = time.thread_time()
            zlib.compress(self.data)
            self.seen.append((time.monotonic(), time.thread_time() - began))
            time.sleep(0.1)

    def since(self, when):
        """The mean since then."""
        return 1 / statistics.mean(t for at, t in self.seen if at >= when)


class Mount:
    """A daemon in the foreground."""

    def __init__(self, a, source, fault, cache):
        words = [a.refrain, 'mount', source, a.mount, '--cache', cache,
                 '--analysis', '--foreground']
        self.a = a
        self.daemon = subprocess.Popen(words + fault)
        self.lines = self.connect()
        while self.ask('status')['status']['scan'] == 'running':
            time.sleep(0.05)

    def connect(self):
        """Its control socket, once it is there."""
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.daemon.poll() is None:
            try:
                at = os.getxattr(self.a.mount, 'user.refrain.control')
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(at.decode())
                return sock.makefile('rw')
            except OSError:
                time.sleep(0.05)
        sys.exit('analyze.py: no mount')

    def ask(self, cmd, **more):
        """Its reply; progress reports are skipped."""
        self.lines.write(json.dumps({'cmd': cmd, **more}) + '\n')
        self.lines.flush()
        while 'ok' not in (reply := json.loads(self.lines.readline())):
            pass
        assert reply['ok'], reply
        return reply

    def close(self):
        """Unmount."""
        self.lines.close()
        subprocess.run([self.a.refrain, 'umount', self.a.mount], check=False)
        self.daemon.wait()


def rate_between(first, last):
    """Samples a second, share of misses."""
    d = {k: last[k] - first[k] for k in first if k != 'ok'}
    return (d['first_reads'] / (d['time_us'] / 1e6),
            d['misses'] / max(d['misses'] + d['hits'], 1))


def window(mount, seconds, samples):
    """(rate, share of misses) of as many whole epochs as last for so long, or
    for twice as long if that is less than one: they begin and end alike."""
    until = time.monotonic() + START_S
    while mount.ask('rates')['first_reads'] == 0:
        assert time.monotonic() < until, 'the trainer reads nothing'
        time.sleep(0.05)
    time.sleep(SKIP_S)
    first = mount.ask('rates')
    time.sleep(seconds)
    until = time.monotonic() + seconds
    while True:
        now = mount.ask('rates')
        read = now['first_reads'] - first['first_reads']
        if (read % samples <= samples * 0.05 or
                time.monotonic() >= until):
            return rate_between(first, now)
        time.sleep(0.02)


def logged(path):
    """Samples that the trainer itself has counted, or 0."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding='ascii') as f:
        lines = f.read().splitlines()
    return int(lines[-1].split()[1]) if lines else 0


def truth(a, trainer, source, fault, size):
    """The trainer over a cache of a share `size` of the dataset."""
    files = [os.path.getsize(os.path.join(d, f))
             for d, _, fs in os.walk(source) for f in fs]
    cache = '%s:%d' % (os.path.join(a.tier, 'tier'),
                       size * (sum(files) + ROOM * len(files)))
    mount = Mount(a, source, fault, cache)
    log = os.path.join(a.work, 'log')
    if os.path.exists(log):
        os.unlink(log)
    mount.ask('warm')
    cached = mount.ask('status')['status']['resident_bytes'] / sum(files)
    child = subprocess.Popen(command(trainer, a.mount, a),
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL,
                             start_new_session=True)
    began = time.monotonic() + SKIP_S
    try:
        rate, miss = window(mount, a.truth, len(files))
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    counted = mount.ask('rates')['first_reads']
    mount.close()
    shutil.rmtree(os.path.join(a.tier, 'tier'))
    return {'cached': cached, 'measured': rate, 'miss': miss,
            'speed': a.speed.since(began), 'counted': counted,
            'logged': logged(log)}


def analyze(a, *words):
    """The JSON of one `refrain analyze`."""
    out = subprocess.run([a.refrain, 'analyze', '--json', *words],
                         stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def measured(runs, speed):
    """The middle of the runs of a truth, and what tells how sure it is."""
    first, last = (r['measured'] for r in runs[:2])
    cell = {k: statistics.median(r[k] for r in runs) for k in runs[0]}
    repeats = max(first, last) / min(first, last) - 1
    return dict(cell, repeats=repeats, steady=repeats <= REPEATS,
                runs=[r['measured'] for r in runs],
                speed=cell['speed'] / speed)


def report(trainer, origin, p, took):
    """What the analysis has found."""
    print('%s, %s: %.0f s; G %s%.0f, R1 %.0f, R0 %.0f, S %.0f, L %.2f; %s' % (
        trainer, origin, took, '>= ' if p['G']['bound'] else '',
        p['G']['value'], p['R1']['value'], p['R0']['value'],
        p['S']['value'], p['L'], '; '.join(p['notes'])))
    for q in p['points']:
        print('    x %.3f miss %.3f rate %7.1f +- %5.1f' % (
            q['x'], q['miss'], q['rate'], q['ci']))


def one_source(a, trainer, origin):
    """All cells of a trainer and a source."""
    source = a.disk if origin == 'disk' else a.data
    fault = ['--fault', 'delay=5ms'] if origin == 'far' else []
    profile = '%s.%s-%s' % (a.json, trainer, origin)
    sizes = [float(s) for s in a.sizes.split()]
    runs = {s: [truth(a, trainer, source, fault, s)] for s in sizes}
    began = time.monotonic()
    p = analyze(a, '--cache', a.tier, '--seconds', str(a.segment), '--profile',
                profile, *fault, source, '--', *command(trainer, '{}', a))
    took, speed = time.monotonic() - began, a.speed.since(began)
    report(trainer, origin, p, took)
    for s in reversed(sizes):
        runs[s].append(truth(a, trainer, source, fault, s))
    for s in sizes:
        cell = measured(runs[s], speed)
        if not cell['steady']:
            runs[s].append(truth(a, trainer, source, fault, s))
            cell = measured(runs[s], speed)
        now = analyze(a, '--from', profile, '--cached',
                      '%.4f%%' % (100 * cell['cached']))['predicted']
        cell.update(trainer=trainer, origin=origin, size=s, **now)
        for k in 'rate', 'serial', 'overlapped':
            cell[k + '_error'] = cell[k] / cell['measured'] - 1
        cell['inside'] = abs(cell['rate'] - cell['measured']) <= cell['ci']
        show(cell)
        yield cell


def show(c):
    """A row."""
    print('%-5s %-5s %5.2f %6.3f %8.1f %8.1f %+6.1f %% +-%5.1f %% %s  '
          '%+6.1f %% %+6.1f %%  %4.1f %%%s  %.3f' % (
              c['trainer'], c['origin'], c['size'], c['miss'], c['rate'],
              c['measured'], 100 * c['rate_error'],
              100 * c['ci'] / c['rate'], 'in ' if c['inside'] else 'OUT',
              100 * c['serial_error'], 100 * c['overlapped_error'],
              100 * c['repeats'], ' ' if c['steady'] else '~', c['speed']),
          flush=True)


def verdict(cells):
    """The bars; 0 if all hold."""
    errors = [abs(c['rate_error']) for c in cells]
    good = sum(e <= BEST for e in errors)
    inside = sum(c['inside'] for c in cells)
    ok = (good >= BEST_SHARE * len(cells) and max(errors) <= WORST and
          statistics.median(errors) <= MEDIAN and
          inside >= INSIDE_SHARE * len(cells))
    print('%s: %d of %d within %.0f %% (bar %.0f), worst %.1f %% (bar %.0f), '
          'median %.1f %% (bar %.0f), %d within their interval (bar %.0f); '
          'worst of serial %.0f %%, of overlapped %.0f %%' % (
              'PASS' if ok else 'FAIL', good, len(cells), 100 * BEST,
              BEST_SHARE * len(cells), 100 * max(errors), 100 * WORST,
              100 * statistics.median(errors), 100 * MEDIAN, inside,
              INSIDE_SHARE * len(cells),
              100 * max(abs(c['serial_error']) for c in cells),
              100 * max(abs(c['overlapped_error']) for c in cells)))
    return 0 if ok else 1


def main():
    """The table."""
    p = argparse.ArgumentParser(description=__doc__)
    for name in ('refrain', 'data', 'disk', 'mount', 'work', 'trainers',
                 'origins', 'sizes', 'json'):
        p.add_argument('--' + name, required=True)
    p.add_argument('--tier', default='/dev/shm')
    p.add_argument('--python', default=os.environ.get('PYTHON', 'python3'))
    p.add_argument('--segment', type=int, default=15)
    p.add_argument('--truth', type=float, default=6)
    p.add_argument('--step-ms', type=float, default=28, help='of DataLoader')
    p.add_argument('--add', action='store_true')
    a = p.parse_args()
    a.speed = Speed()
    a.tier = os.path.join(a.tier, 'refrain-bench.%d' % os.getpid())
    os.mkdir(a.tier)
    print('cell         size   miss predicted measured   error  interval      '
          'serial overlapped  repeats  speed')
    cells = []
    if a.add and os.path.exists(a.json):
        with open(a.json, encoding='ascii') as f:
            cells = [c for c in json.load(f)
                     if c['trainer'] not in a.trainers.split() or
                     c['origin'] not in a.origins.split()]
    try:
        for trainer in a.trainers.split():
            for origin in a.origins.split():
                cells += one_source(a, trainer, origin)
                with open(a.json, 'w', encoding='ascii') as f:
                    json.dump(cells, f, indent=1)
    finally:
        shutil.rmtree(a.tier, ignore_errors=True)
    return verdict(cells)


if __name__ == '__main__':
    sys.exit(main())
