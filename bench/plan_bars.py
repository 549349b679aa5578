#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cells of bench/plan-bars.sh: epochs with a plan beside what is possible.

A cell is a mount that holds half of a dataset and fetches the rest by a plan,
from a source that is far away (delay), slow (rate), or both, and what reads it:
`refrain load`, the Python package's Loader, or an ordinary reader beside
`refrain plan` or refrain_plan.py.
The ideal epoch is the greatest of four terms: its steps x the time of a step,
missing bytes / rate, missing items x delay / depth, and the time that a bare
reader takes on a mount that holds everything. From the third epoch on each may
take BAR times that; nothing is fetched in vain; and the bytes of the source,
those carried in memory, and those from the tier are what was read, exactly.

A `foreign` cell reads other files of the mount, one at a time, alone, beside
a trainer without a plan, and beside the same with one, with nothing cached: the
last p99 may be above the second by what a planned request takes.

Exits with 1 if a cell fails.
"""
import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import threading
import time

BATCH = 32
BAR = 1.05
DEPTH = 64              # requests at a time, if the source does not report a number
ENTRY_BYTES = 4096      # maximum size of an entry besides its content
FILES = 1500
FILE_BYTES = 110000
FOREIGN_FILES = 150
CACHED = 0.5
ECHO_MAX = 4
WINDOW = max(16 * BATCH, 1024) - BATCH  # of the echo schedule, in examples
KINDS = {'delay': (0.2, 0), 'rate': (0, 20000000), 'both': (0.2, 20000000)}
DEFAULTS = {'by': 'load', 'kind': 'delay', 'ahead': 8, 'threads': 1,
            'ranks': 1, 'pace_ms': 10, 'echo': '1', 'epochs': 5,
            'step_ms': 40, 'window': 4}
COUNTERS = ('origin_bytes', 'prefetch_carried_bytes', 'reread_bytes',
            'hit_bytes', 'admitted_unread_bytes', 'misses', 'hits',
            'prefetch_issued', 'prefetch_used', 'staging_dropped',
            'partial_dropped', 'origin_reads', 'passed_through', 'admitted')
QUICK = ('load-delay-ahead-1', 'load-delay-ahead-8', 'load-delay-echo-2',
         'plan-delay-threads-4')
# The smallest set of cells that has each value of the bar at least once.
COVER = ('load-delay-ahead-1', 'load-rate-ahead-2', 'load-both-ahead-8',
         'load-delay-ahead-16', 'load-rate-ahead-64',
         'plan-delay-threads-1', 'plan-rate-threads-4',
         'plan-both-threads-16', 'python-delay-threads-1',
         'python-both-threads-4', 'python-delay-threads-16',
         'load-delay-fits', 'load-delay-epochs-2', 'load-delay-epochs-12',
         'load-rate-ranks-2', 'plan-rate-ranks-2-measured',
         'load-delay-echo-2', 'load-rate-auto-ahead-8',
         'load-delay-auto-ahead-64', 'foreign-delay', 'foreign-rate',
         'foreign-both', 'foreign-rate-ahead-8')
SETS = {'quick': QUICK, 'cover': COVER, 'all': ('*',)}


def grid():
    """All cells, by name. `window`: the missing bytes are so many times what
    plans may have in memory; 0: they all fit."""
    cells = {}

    def cell(name, **settings):
        cells[name] = dict(DEFAULTS, **settings)

    for kind in KINDS:
        for ahead in (1, 2, 8, 16, 64):
            cell('load-%s-ahead-%d' % (kind, ahead), kind=kind, ahead=ahead)
        for threads in (1, 4, 16):
            cell('plan-%s-threads-%d' % (kind, threads), by='plan',
                 kind=kind, threads=threads)
    for threads in (1, 4, 16):
        cell('python-delay-threads-%d' % threads, by='python',
             threads=threads)
    cell('python-both-threads-4', by='python', kind='both', threads=4)
    for ahead in (1, 8, 64):
        cell('load-steps-ahead-%d' % ahead, ahead=ahead, step_ms=80)
    for by in ('load', 'plan', 'python'):
        cell('%s-delay-fits' % by, by=by, window=0)
    for epochs in (2, 3, 12):
        cell('load-delay-epochs-%d' % epochs, epochs=epochs)
    cell('plan-delay-epochs-12', by='plan', threads=4, epochs=12)
    for kind in ('delay', 'rate'):
        cell('load-%s-ranks-2' % kind, kind=kind, ranks=2)
        cell('plan-%s-ranks-2' % kind, by='plan', kind=kind, ranks=2,
             threads=4)
        cell('plan-%s-ranks-2-measured' % kind, by='plan', kind=kind, ranks=2,
             threads=4, pace_ms=0)
        for ahead in (8, 64):
            cell('load-%s-auto-ahead-%d' % (kind, ahead), kind=kind,
                 ahead=ahead, echo='auto', epochs=7,
                 step_ms=25 if kind == 'delay' else 44)
    for ahead in (1, 8):
        cell('load-delay-echo-2' + ('-ahead-1' if ahead == 1 else ''),
             ahead=ahead, echo='2', step_ms=25)
    for kind in ('delay', 'rate'):
        cell('package-' + kind, by='package', kind=kind)
    cell('package-delay-echo-2', by='package', echo='2', step_ms=25)
    cell('package-delay-auto', by='package', echo='auto', epochs=7,
         step_ms=25)
    for kind in KINDS:
        cell('foreign-' + kind, by='foreign', kind=kind, ahead=64)
    cell('foreign-rate-ahead-8', by='foreign', kind='rate')
    cell('foreign-rate-steps', by='foreign', kind='rate', ahead=64,
         step_ms=200)
    cell('load-rate-echo-2', kind='rate', echo='2', step_ms=40)
    return cells


class Failure(Exception):
    pass


def call(*argv, **options):
    done = subprocess.run(argv, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True,
                          **options)
    if done.returncode:
        raise Failure('%s: %s' % (' '.join(argv[:3]), done.stderr.strip()))
    return done.stdout


class Mount:
    """A mount of the source that goes away with the block."""

    def __init__(self, a, where, *options, source=None):
        self.a = a
        self.dir = where + '/mnt'
        self.cache = where + '/cache'
        os.makedirs(self.dir, exist_ok=True)
        self.daemon = subprocess.Popen(
            [a.refrain, 'mount', source or a.source, self.dir, '--foreground',
             *[o.replace('CACHE', self.cache) for o in options]],
            stderr=subprocess.DEVNULL)

    def status(self):
        try:
            return json.loads(call(self.a.refrain, 'status', self.dir,
                                   '--json'))
        except Failure:
            return {}

    def __enter__(self):
        for _ in range(600):
            if self.status().get('scan') == 'complete':
                return self
            if self.daemon.poll() is not None:
                break
            time.sleep(0.1)
        self.__exit__()
        raise Failure('the mount does not come')

    def __exit__(self, *unused):
        subprocess.run([self.a.refrain, 'umount', self.dir], check=False,
                       stdout=subprocess.DEVNULL)
        self.daemon.wait()
        shutil.rmtree(self.cache, ignore_errors=True)


def options_of(c):
    blocks = (FILE_BYTES + ENTRY_BYTES + 4095) // 4096 * 4096
    delay_s, rate = KINDS[c['kind']]
    fault = []
    if delay_s:
        fault.append('delay=%dms' % (delay_s * 1000))
    if rate:
        fault.append('rate=%d' % rate)
    options = ['--cache', 'CACHE:%d' % (int(FILES * CACHED) * blocks),
               '--pages', '1M', '--fault', ','.join(fault)]
    if c['window']:
        missing = FILES * (1 - CACHED) * FILE_BYTES
        # Plans have half of it.
        options += ['--limit', '1M', '--staging',
                    '%dK' % (2 * missing / c['window'] / 1024)]
    return options


# -- Readers ------------------------------------------------------------------

def step_log(path):
    """(seconds, fresh, ends an epoch) of each step."""
    with open(path, encoding='ascii') as f:
        rows = [line.split() for line in f]
    return [(int(r[1]) / 1e6, int(r[3]), r[4] != '0') for r in rows]


def epochs_of(steps):
    """(seconds, steps) of each epoch; the first begins with its first step."""
    out, begin, first = [], steps[0][0], 0
    for n, (at, _, ends) in enumerate(steps):
        if ends:
            out.append((at - begin, n - first + (not out)))
            begin, first = at, n
    return out


def load_argv(a, c, mount, where, r):
    """`refrain load`, or the same trainer in Python."""
    words = {'batch': BATCH, 'size': 64, 'threads': 1,
             'reads-ahead': c['ahead'], 'epochs': c['epochs'],
             'echo': c['echo'], 'world': c['ranks'], 'rank': r}
    log = '%s/steps.%d' % (where, r)
    changes = where + '/changes' if c['echo'] == 'auto' else None
    if c['by'] == 'package':
        argv = [a.python, a.trainer, mount.dir, str(c['step_ms']), log]
        argv += ['%s=%s' % (n.replace('-', '_'), v) for n, v in words.items()]
        return argv + (['changes=' + changes] if changes else [])
    argv = [a.refrain, 'load', mount.dir, '--step-ms', str(c['step_ms']),
            '--step-log', log, '--json']
    for name, value in words.items():
        argv += ['--' + name, str(value)]
    return argv + (['--echo-log', changes] if changes else [])


def run_load(a, c, mount, where):
    """A row of epochs for each rank, and what the loaders say together."""
    ranks = []
    for r in range(c['ranks']):
        argv = load_argv(a, c, mount, where, r)
        ranks.append(subprocess.Popen(argv, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True))
    rows, hit_bytes = [], 0
    for r, p in enumerate(ranks):
        out, err = p.communicate()
        if p.returncode:
            raise Failure('load: ' + err.strip())
        hit_bytes += json.loads(out)['direct_hits'] * FILE_BYTES
        rows.append(epochs_of(step_log('%s/steps.%d' % (where, r))))
    return rows, hit_bytes


def make_orders(a, c, where):
    """Of each rank: the file that names its files, and the order of each
    epoch as the reader will draw it."""
    names = sorted(os.path.join('c', n) for n in os.listdir(a.source + '/c'))
    orders = []
    for r in range(c['ranks']):
        mine = '%s/names.%d' % (where, r)
        order = '%s/order.%d' % (where, r)
        with open(mine, 'w', encoding='ascii') as f:
            f.write(''.join(n + '\n' for n in names[r::c['ranks']]))
        call(*reader_argv(a, c, r, mine, a.source), '--order', order)
        epochs = [[] for _ in range(c['epochs'])]
        with open(order, encoding='ascii') as f:
            for line in f:
                epoch, _, path = line.split()
                epochs[int(epoch) - 1].append(path)
        orders.append((mine, epochs))
    return orders


def reader_argv(a, c, rank, names, where):
    return [a.reader, where, '--files-from', names, '--threads',
            str(c['threads']), '--epochs', str(c['epochs']), '--seed',
            str(rank), '--forget', '--json']


def begin_plan(a, c, mount, epochs):
    """Something to be closed."""
    if c['by'] == 'python':
        sys.path.insert(0, a.tools)
        import refrain_plan  # pylint: disable=import-outside-toplevel
        plan = refrain_plan.Plan(mount.dir, batch=BATCH)
        for number, paths in enumerate(epochs):
            plan.epoch(number, paths)
        plan.flush(10)
        if plan.error:
            raise Failure(plan.error)
        return plan.close
    argv = [a.refrain, 'plan', mount.dir, '--batch', str(BATCH), '--json']
    if c['ranks'] > 1 and c['pace_ms']:
        argv += ['--step-ms', str(c['pace_ms'])]
    plan = subprocess.Popen(argv, stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, text=True)
    plan.stdin.write('\n\n'.join('\n'.join(e) for e in epochs) + '\n')
    plan.stdin.close()
    return plan.wait


def wait_for_plans(mount, positions):
    for _ in range(200):
        if mount.status().get('planned_positions', 0) >= positions:
            return
        time.sleep(0.05)
    raise Failure('the mount has no plan')


def run_ordinary(a, c, mount, where):
    orders = make_orders(a, c, where)
    ends = [begin_plan(a, c, mount, epochs) for _, epochs in orders]
    # Bytes that come into the tier while names are added do not count.
    wait_for_plans(mount, FILES * (c['epochs'] - 1))
    rows = [None] * c['ranks']

    def read(r):
        rows[r] = call(*reader_argv(a, c, r, orders[r][0], mount.dir))

    threads = [threading.Thread(target=read, args=(r,))
               for r in range(c['ranks'])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for end in ends:
        end()
    if None in rows:
        raise Failure('a reader failed')
    return [[(json.loads(line)['seconds'], 0) for line in out.splitlines()]
            for out in rows], 0


# -- What is possible ---------------------------------------------------------

def bare_reader(a, threads):
    """Seconds that so many threads take for a mount that holds all files."""
    size = FILES * (FILE_BYTES + ENTRY_BYTES) // 4096 * 4096 * 2
    with Mount(a, a.work + '/warm', '--cache', 'CACHE:%d' % size) as mount:
        call(a.refrain, 'warm', mount.dir)
        out = call(a.reader, mount.dir, '--threads', str(threads),
                   '--epochs', '3', '--forget', '--json')
    return min(json.loads(line)['seconds'] for line in out.splitlines())


def bounds(c, missing, steps, warm_s):
    delay_s, rate = KINDS[c['kind']]
    return {
        'steps': steps * c['step_ms'] / 1000,
        'rate': missing * FILE_BYTES / rate if rate else 0,
        'delay': missing * delay_s / DEPTH,
        'reader': warm_s,
    }


# -- Echo auto ----------------------------------------------------------------

def factors(where, steps):
    """The echo factor of each step."""
    out = [1.0] * len(steps)
    if not os.path.exists(where + '/changes'):
        return out
    with open(where + '/changes', encoding='ascii') as f:
        for line in f:
            begins, e = line.split()
            p, q = e.split('/')
            for n in range(int(begins), len(out)):
                out[n] = int(p) / int(q)
    return out


def follow(c, where, missing, carried):
    """R, the share of steps from three windows after the first epoch on, in
    which all was missing, that are more than 15 % off it, and their rate beside
    what is possible. What an epoch carries over in memory is not fetched."""
    steps = step_log(where + '/steps.0')
    e = factors(where, steps)
    delay_s, rate = KINDS[c['kind']]
    example_s = (missing - carried) / FILES * max(delay_s / DEPTH,
                                      FILE_BYTES / rate if rate else 0)
    step_s = c['step_ms'] / 1000
    r = BATCH * example_s / step_s
    want = min(max(r, 1), ECHO_MAX)
    fresh, late = 0, 0
    while late < len(steps) and fresh < FILES + 3 * WINDOW:
        fresh += steps[late][1]
        late += 1
    last = max(n for n, s in enumerate(steps) if s[1])
    if last - late < 20:
        return {'r': r, 'off': 1, 'rate': 0, 'least': 0, 'most': 0,
                'reads': 0}
    here = e[late:last]
    got = (last - late) / (steps[last][0] - steps[late][0])
    return {'r': r, 'least': min(here), 'most': max(here),
            'off': sum(abs(x - want) > .15 * want for x in here) / len(here),
            'rate': got / min(1 / step_s, ECHO_MAX / (r * step_s)),
            # Each fresh example is served as often as its factor says.
            'reads': sum(s[1] * x for s, x in zip(steps, e))
            / (BATCH * len(steps))}


# -- A cell -------------------------------------------------------------------

def judge(c, rows, hit_bytes, s, warm_s):
    missing = FILES - s['entries']
    ratios, best, ideal = [], [], {}
    for row in rows:
        out = []
        for took, steps in row:
            ideal = bounds(c, missing, steps, warm_s)
            out.append(took / max(ideal.values()))
        ratios.append(out)
        best = ideal
    hits = s['hit_bytes'] + hit_bytes - s['admitted_unread_bytes']
    return {
        'ideal': best,
        'epochs': [max(x) for x in zip(*ratios)],
        'ranks': ratios,
        'wasted': s['prefetch_wasted'],
        'balance': s['origin_bytes'] - s['reread_bytes']
        + s['prefetch_carried_bytes'] + hits - c['epochs'] * FILES * FILE_BYTES,
        'load': os.getloadavg()[0],
        'counters': {n: s[n] for n in COUNTERS},
    }


def measure(a, name, c, warm_s):
    where = a.work + '/cell'
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    run = run_load if c['by'] in ('load', 'package') else run_ordinary
    with Mount(a, where, *options_of(c)) as mount:
        rows, hit_bytes = run(a, c, mount, where)
        s = mount.status()
    m = judge(c, rows, hit_bytes, s, warm_s)
    m['cell'] = name
    m['late'] = max(m['epochs'][2:], default=0)
    m['good'] = m['late'] <= BAR and not m['balance'] and not m['wasted'] \
        and m['counters']['prefetch_issued'] > 0
    if c['echo'] == 'auto':
        carried = s['prefetch_carried_bytes'] / FILE_BYTES
        m['auto'] = follow(c, where, FILES - s['entries'],
                           carried / (c['epochs'] - 1))
        m['good'] &= m['auto']['off'] == 0 and m['auto']['rate'] >= .9
    return m


# -- A foreign reader ---------------------------------------------------------

def read_foreign(mount):
    """Milliseconds of each read."""
    out = []
    for n in range(FOREIGN_FILES):
        begin = time.monotonic()
        with open('%s/f/%d' % (mount.dir, n), 'rb') as f:
            f.read()
        out.append((time.monotonic() - begin) * 1000)
        time.sleep(0.03)
    return sorted(out)


def beside(a, c, where, *options):
    """What the reads take beside a trainer with these options; without any:
    alone."""
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    mount_options = options_of(c)
    mount_options[1] = 'CACHE:64K'
    with Mount(a, where, *mount_options, source=a.both) as mount:
        if not options:
            return read_foreign(mount)
        with subprocess.Popen(
                [a.refrain, 'load', mount.dir + '/train', '--batch', str(BATCH),
                 '--size', '64', '--threads', '1',
                 '--step-ms', str(c['step_ms']), '--epochs', '99',
                 *options], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL) as trainer:
            try:
                while mount.status().get('origin_reads', 0) < FILES:
                    if trainer.poll() is not None:
                        raise Failure('the trainer failed')
                    time.sleep(0.1)
                return read_foreign(mount)
            finally:
                trainer.terminate()


def measure_foreign(a, name, c):
    delay_s, rate = KINDS[c['kind']]
    request_ms = 1000 * (delay_s + (FILE_BYTES / rate if rate else 0))
    where = a.work + '/cell'
    ahead = ['--reads-ahead', str(c['ahead'])]
    times = [beside(a, c, where),
             beside(a, c, where, '--no-mount-help', *ahead),
             beside(a, c, where, *ahead)]
    p50 = [t[len(t) // 2] for t in times]
    p99 = [t[len(t) * 99 // 100 - 1] for t in times]
    return {'cell': name, 'p50_ms': p50, 'p99_ms': p99,
            'request_ms': request_ms, 'load': os.getloadavg()[0],
            'good': p99[2] <= p99[1] + request_ms}


def show_foreign(m):
    print('| %s | a request %.1f ms | p50 %s, p99 %s ms alone, beside a '
          'trainer, with a plan | | | %.1f | %s |' % (
              m['cell'], m['request_ms'],
              ' '.join('%.1f' % x for x in m['p50_ms']),
              ' '.join('%.1f' % x for x in m['p99_ms']), m['load'],
              'pass' if m['good'] else 'FAIL'))
    sys.stdout.flush()


def show(m):
    print('| %s | %s | %s | %d | %d | %.1f | %s |' % (
        m['cell'], ' '.join('%.2f' % x for x in m['ideal'].values()),
        ' '.join('%.3f' % x for x in m['epochs']), m['wasted'],
        m['balance'], m['load'], 'pass' if m['good'] else 'FAIL'))
    if m['balance']:
        print('  ', m['counters'])
    if len(m['ranks']) > 1:
        print('  ranks: ' + '; '.join(
            ' '.join('%.3f' % x for x in row) for row in m['ranks']))
    if 'auto' in m:
        print('  R %(r).2f, e %(least).2f to %(most).2f, off %(off).2f, step '
              'rate %(rate).3f of what is possible, reads a step %(reads).3f of '
              'B/e'
              % m['auto'])
    sys.stdout.flush()


def arguments():
    p = argparse.ArgumentParser()
    for name in ('refrain', 'reader', 'tools', 'source', 'both', 'work', 'json',
                 'machine', 'python', 'trainer'):
        p.add_argument('--' + name, default='')
    p.add_argument('--list', action='store_true')
    p.add_argument('cells', nargs='*',
                   help='names or patterns, or quick, cover, all')
    return p.parse_args()


def chosen(a):
    cells = grid()
    patterns = [p for name in a.cells or ['quick']
                for p in SETS.get(name, (name,))]
    return {n: c for n, c in cells.items()
            if any(fnmatch.fnmatch(n, p) for p in patterns)}


def verdict(done, seconds):
    """The last lines: the epochs nearest to the bar, the cells that fail."""
    near = sorted((m['late'], m['cell']) for m in done if 'late' in m)
    if near:
        print('nearest to %.2f: %s' % (BAR, ', '.join(
            '%s %.3f' % (cell, late) for late, cell in near[:-6:-1])))
    bad = [m['cell'] for m in done if not m['good']]
    print('%s: %d of %d cells meet the bar, %.0f s, load %.1f%s' % (
        'FAIL' if bad else 'PASS', len(done) - len(bad), len(done), seconds,
        os.getloadavg()[0], '; not: ' + ', '.join(bad) if bad else ''))
    return 1 if bad else 0


def main():
    a = arguments()
    cells = chosen(a)
    if a.list or not cells:
        print('\n'.join(cells if a.cells else grid()))
        return 0 if a.list else 2
    print('| cell | ideal: steps rate delay reader, s | epochs / ideal '
          '| wasted | balance | load | |')
    print('|---|---|---|---|---|---|---|')
    begin, warm_s, done = time.monotonic(), {}, []
    for name, c in cells.items():
        try:
            if c['by'] == 'foreign':
                done.append(measure_foreign(a, name, c))
                show_foreign(done[-1])
                continue
            if c['threads'] not in warm_s:
                warm_s[c['threads']] = bare_reader(a, c['threads'])
            done.append(measure(a, name, c, warm_s[c['threads']]))
            show(done[-1])
        except Failure as e:
            print('| %s | %s | | | | | FAIL |' % (name, e))
            done.append({'cell': name, 'good': False})
    with open(a.json, 'w', encoding='ascii') as f:
        json.dump({'bench': 'plan-bars', 'machine': a.machine,
                   'cells': done}, f, indent=1)
    return verdict(done, time.monotonic() - begin)


if __name__ == '__main__':
    sys.exit(main())
