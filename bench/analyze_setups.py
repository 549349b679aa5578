#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trainers whose bottleneck is known by construction, analysed: the rate of the
source, of the workers that prepare and of the steps is slow alone, and in
pairs.

    analyze_setups.py REFRAIN [NAME ...]
    analyze_setups.py REFRAIN --photos DIR [NAME ...]
    analyze_setups.py --train FOLDER PREP_RATE STEP_RATE [any]   (used by it)

The stand-in trainer is a pipeline of threads that sleep: what it needs of the
processors is little. Tiny images need no preparation, but for the set-ups in
ANY_SIZE: there the threads that prepare read the files, too, and G must not be
called exact. Expected are the rates
that were set: compute takes 1 / G, preparation the rest of 1 / min(G, P),
fetching the rest of 1 / min(G, P, F). Prints a row a set-up, and exits with 1
if a bottleneck is not named, a share is off by more than POINTS, or a G that is
called exact by more than 2 %, or should not be called so.

With --photos, the trainers are those of bench/analyze_script.py (PyTorch, PIL
and numpy in PYTHON), and DIR has some hundred photographs and no other files.
Exits with 1 if a bottleneck is named wrong, or more than UNDECIDED are not
named. TOGETHER analyses at a time are the load of the machine (default: 3).
"""
import concurrent.futures
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time

FAST_PREP, FAST_STEP = 1600, 300    # samples a second
BATCH = 16
POINTS = 3
EXACT = 0.02
READERS, PREPARERS = 8, 4
IMAGES = 1000
TOGETHER = int(os.environ.get('TOGETHER', '3'))
UNDECIDED = 3

# Name: samples a second of the source (0: not limited), of preparation, of
# steps.
SETUPS = {
    'source-200': (200, FAST_PREP, FAST_STEP),
    'source-100': (100, FAST_PREP, FAST_STEP),
    'prep-200': (0, 200, FAST_STEP),
    'prep-100': (0, 100, FAST_STEP),
    'step-200': (0, FAST_PREP, 200),
    'step-100': (0, FAST_PREP, 100),
    'source-100-prep-200': (100, 200, FAST_STEP),
    'source-200-prep-100': (200, 100, FAST_STEP),
    'source-100-step-200': (100, FAST_PREP, 200),
    'source-200-step-100': (200, FAST_PREP, 100),
    'prep-100-step-200': (0, 100, 200),
    'prep-200-step-100': (0, 200, 100),
    # Preparation of tiny images takes as long, so G is not known.
    'prep-any-size-100': (0, 100, FAST_STEP),
}
ANY_SIZE = {'prep-any-size-100'}

# Name: the bottleneck, the fault of the source, and the script's options.
SCRIPTS = {
    'compute-workers': ('compute', '', '--workers 2 --step sleep:150'),
    'compute-same-thread': ('compute', '', '--step sleep:800'),
    'compute-numpy': ('compute', '', '--workers 2 --step numpy:150'),
    'compute-feed': ('compute', '',
                     '--feed 2 --prep sleep:2 --step sleep:250'),
    'prep-workers': ('prep', '', '--workers 2 --prep sleep:25 --step sleep:20'),
    'prep-same-thread': ('prep', '', '--prep numpy:20 --step sleep:10'),
    'prep-numpy': ('prep', '', '--workers 2 --prep numpy:25 --step sleep:20'),
    'prep-pool': ('prep', '', '--pool 4 --prep sleep:30 --step sleep:20'),
    'fetch-workers': ('fetch', 'delay=60ms', '--workers 2 --step sleep:20'),
    'fetch-same-thread': ('fetch', 'delay=30ms',
                          '--prep sleep:2 --step sleep:20'),
    'fetch-rate': ('fetch', 'rate=5M',
                   '--workers 4 --persistent --step sleep:20'),
    'fetch-pool': ('fetch', 'delay=80ms',
                   '--pool 4 --prep numpy:3 --step sleep:50'),
}


class Pace:
    """Sleeps so that turns come at a rate, however late each sleep ends."""

    def __init__(self, rate):
        self.each, self.next = 1 / rate, time.monotonic()

    def turn(self):
        """The end of one."""
        now = time.monotonic()
        # A thread that was idle must not catch up.
        self.next = max(self.next, now - self.each) + self.each
        time.sleep(max(self.next - now, 0))


def read(names, out):
    """Read files, of which each reader takes the next one."""
    while True:
        with open(names.get(), 'rb', buffering=0) as f:
            out.put(f.readall())


def prepare(rate, files, out):
    """One of PREPARERS. Tiny images end with zeros."""
    pace = Pace(rate / PREPARERS)
    while True:
        if files.get()[-64:].strip(b'\0'):
            pace.turn()
        out.put(1)


def read_and_prepare(rate, names, out):
    """One of PREPARERS, which takes as long for each image."""
    pace = Pace(rate / PREPARERS)
    while True:
        with open(names.get(), 'rb', buffering=0) as f:
            f.readall()
        time.sleep(pace.each)
        out.put(1)


def start(run_it, count, *args):
    """Threads that do the same."""
    for _ in range(count):
        threading.Thread(target=run_it, daemon=True, args=args).start()


def train(folder, prep_rate, step_rate, any_size):
    """Endless."""
    files = [os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs]
    names, read_files, samples = queue.Queue(16), queue.Queue(16), \
        queue.Queue(32)
    if any_size:
        start(read_and_prepare, PREPARERS, prep_rate, names, samples)
    else:
        start(read, READERS, names, read_files)
        start(prepare, PREPARERS, prep_rate, read_files, samples)

    def name():
        while True:
            random.shuffle(files)
            for f in files:
                names.put(f)
    start(name, 1)
    pace = Pace(step_rate / BATCH)
    while True:
        for _ in range(BATCH):
            samples.get()
        pace.turn()


def expected(source, prep, step):
    """Shares of compute, preparation and fetching, and the bottleneck."""
    warm = min(prep, step)
    cold = min(warm, source or warm)
    shares = [100 * cold / step, 100 * cold * (1 / warm - 1 / step),
              100 * cold * (1 / cold - 1 / warm)]
    name = ('fetch' if shares[2] >= shares[1] else 'prep') \
        if shares[1] + shares[2] >= 5 else 'compute'
    return shares, name


def run(refrain, name, data, mean):
    """One analysis; its row."""
    source, prep, step = SETUPS[name]
    fault = ['--fault', 'rate=%d' % (source * mean)] if source else []
    out = subprocess.run(
        [refrain, 'analyze', '--json', '--seconds',
         os.environ.get('SEGMENT', '8'), *fault, data, '--', sys.executable,
         os.path.abspath(__file__), '--train', '{}', str(prep), str(step),
         *(['any'] if name in ANY_SIZE else [])],
        stdout=subprocess.PIPE, check=True)
    p = json.loads(out.stdout)
    shares, bottleneck = expected(*SETUPS[name])
    hidden = name in ANY_SIZE
    seen = [p['shares'][k + '_pct'] for k in ('compute', 'prep', 'fetch')]
    off = max(abs(a - b) for a, b in zip(shares, seen))
    g_off = p['G']['value'] / step - 1
    return {'name': name, 'want': bottleneck, 'named': p['bottleneck'],
            'shares': seen, 'expected': shares, 'off': off,
            'g': p['G']['value'], 'bound': p['G']['bound'], 'g_off': g_off,
            'r1': p['R1']['value'], 'r0': p['R0']['value'],
            'ok': p['G']['bound'] if hidden else
                  p['bottleneck'] == bottleneck and off <= POINTS and
                  (p['G']['bound'] or abs(g_off) <= EXACT)}


def run_script(refrain, name, photos):
    """One analysis of a script; prints its row, and returns what it named."""
    want, fault, words = SCRIPTS[name]
    began = time.monotonic()
    out = subprocess.run(
        [refrain, 'analyze', '--json',
         *(['--fault', fault] if fault else []), photos, '--',
         os.environ.get('PYTHON', 'python3'),
         os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      'analyze_script.py'), '{}', *words.split()],
        stdout=subprocess.PIPE, check=True)
    p = json.loads(out.stdout)
    r = p['readers']
    print('%-20s %-8s %-10s %4.0f s  %s  repeats +- %2.0f %%  %s' % (
        name, want, p['bottleneck'], time.monotonic() - began,
        ' / '.join('%3.0f' % p['shares'][k + '_pct']
                   for k in ('compute', 'prep', 'fetch')),
        100 * p['repeats'],
        '  '.join('%s %s' % (k, json.dumps(r[k]))
                  for k in ('warm', 'cold', 'delay'))), flush=True)
    return p['bottleneck']


def scripts(refrain, photos, names):
    """The table of the scripts."""
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        named = list(pool.map(lambda n: run_script(refrain, n, photos), names))
    undecided = named.count('undecided')
    wrong = sum(b not in ('undecided', SCRIPTS[n][0])
                for n, b in zip(names, named))
    bad = wrong > 0 or undecided > UNDECIDED
    print('%s: of %d, %d wrong (bar: 0), %d undecided (bar: %d)' % (
        'FAIL' if bad else 'PASS', len(named), wrong, undecided, UNDECIDED))
    return 1 if bad else 0


def main():
    """The table."""
    if sys.argv[2:3] == ['--photos']:
        return scripts(os.path.abspath(sys.argv[1]), sys.argv[3],
                       sys.argv[4:] or list(SCRIPTS))
    refrain, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or SETUPS
    with tempfile.TemporaryDirectory() as top:
        data = os.path.join(top, 'data')
        os.environ['XDG_CACHE_HOME'] = top
        subprocess.run([refrain, 'make-dataset', '--classes', '2', '--images',
                        str(IMAGES), '--size', '128x96', data], check=True,
                       stdout=subprocess.DEVNULL)
        sizes = [os.path.getsize(os.path.join(d, f))
                 for d, _, files in os.walk(data) for f in files]
        with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
            rows = list(pool.map(
                lambda n: run(refrain, n, data, sum(sizes) / len(sizes)),
                names))
    print('%-20s %-8s %-8s %22s %22s %5s   G' % (
        'set-up', 'is', 'named', 'compute/prep/fetch', 'expected', 'off'))
    for r in rows:
        print('%-20s %-8s %-8s %22s %22s %5.1f %s%.0f (%+.1f %%) R1 %.0f R0 '
              '%.0f %s' % (
                  r['name'], r['want'], r['named'],
                  ' / '.join('%.1f' % s for s in r['shares']),
                  ' / '.join('%.1f' % s for s in r['expected']), r['off'],
                  '>= ' if r['bound'] else '', r['g'], 100 * r['g_off'],
                  r['r1'], r['r0'], 'ok' if r['ok'] else 'MISSED'))
    good = sum(r['ok'] for r in rows)
    print('%s: %d of %d' % ('PASS' if good == len(rows) else 'FAIL', good,
                            len(rows)))
    return 0 if good == len(rows) else 1


if __name__ == '__main__':
    if sys.argv[1] == '--train':
        train(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]),
              sys.argv[5:] == ['any'])
    sys.exit(main())
