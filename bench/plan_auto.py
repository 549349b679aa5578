#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What bench/plan-auto.sh has measured: the logs of its runs as a table and
JSON."""
import argparse
import json
import os
import re
import sys

ECHO_MAX = 4
LATE = 3        # windows after a change that are ignored
UNITS = {'': 1, 'K': 1 << 10, 'M': 1 << 20}


def rows(path):
    """Of whole lines: the last may be cut."""
    if not os.path.exists(path):
        return []
    with open(path, encoding='ascii') as f:
        return [line.split() for line in f if line.endswith('\n')]


def limits(text):
    """Seconds of delay and bytes a second of the fault origin; 0: none."""
    delay = re.search(r'delay=(\d+)ms', text)
    rate = re.search(r'rate=(\d+)([KM]?)', text)
    return (int(delay[1]) / 1000 if delay else 0,
            int(rate[1]) * UNITS[rate[2]] if rate else 0)


def factor_at(changes, step):
    e = 1.0
    for begins, now in changes:
        if step >= begins:
            e = now
    return e


def follow(a, steps, changes, begin, end, named, fetched):
    """From LATE windows after `begin` to `end`: what E8 asks for. In the first
    epoch nothing is cached: its end is a change of R, too. R is less than named
    by what need not be fetched again."""
    r = named * fetched
    ends = [at for at, _, ended in steps if ended]
    begin = max(begin, ends[0])
    fresh = 0
    late = None
    for n, (at, of_them, _) in enumerate(steps):
        fresh += of_them if at >= begin else 0
        if fresh >= LATE * a.window:
            late = n
            break
    last = max((n for n, s in enumerate(steps) if s[0] < end and s[1]),
               default=0)
    if late is None or last - late < 10:
        return {'r': r, 'steps': 0}
    want = min(max(r, 1), ECHO_MAX)
    factors = [factor_at(changes, n) for n in range(late, last + 1)]
    rate = (last - late) / (steps[last][0] - steps[late][0])
    most = min(1 / a.step_s, ECHO_MAX / (r * a.step_s))
    return {'r': r, 'named': named, 'steps': last - late,
            'least': min(factors), 'most': max(factors),
            'off': sum(abs(e - want) > .15 * want for e in factors) /
                   len(factors),
            'rate': rate / most}


def epochs_of(a, steps, marks, missing):
    """Seconds of each epoch, and the ideal of those of one speed."""
    ends = [n for n, s in enumerate(steps) if s[2]]
    out = []
    for k in range(1, len(ends)):
        began, ended = steps[ends[k - 1]][0], steps[ends[k]][0]
        speed = [m for m in marks if m[0] <= began][-1]
        if any(began < m[0] < ended for m in marks):
            continue
        delay, rate = limits(speed[2])
        parts = {'steps': (ends[k] - ends[k - 1]) * a.step_s,
                 'rate': missing * a.file_bytes / rate if rate else 0,
                 'delay': missing * delay / a.depth,
                 'bare': a.bare_s}
        ideal = max(parts.values())
        out.append({'epoch': k + 1, 'named': speed[1], 's': ended - began,
                    'ideal': parts, 'over': (ended - began) / ideal})
    return out


def measure(a):
    marks = [(int(f[0]) / 1e9, float(f[1]), f[2])
             for f in rows(a.work + '/marks')]
    steps = [(int(f[1]) / 1e6, int(f[3]), int(f[4]))
             for f in rows(a.work + '/steps')]
    changes = []
    for step, e in rows(a.work + '/changes'):
        p, q = e.split('/')
        changes.append((int(step), int(p) / int(q)))
    with open(a.work + '/status', encoding='utf-8') as f:
        status = json.load(f)
    with open(a.work + '/load', encoding='utf-8') as f:
        load = json.load(f)
    ends = [m[0] for m in marks[1:]] + [steps[-1][0]]
    missing = a.images - status['entries']
    # Bytes that an epoch leaves in memory are not fetched in the next one.
    boundaries = max(len([s for s in steps if s[2]]) - 1, 1)
    carried = status.get('prefetch_carried_bytes', 0) / a.file_bytes
    fetched = 1 - carried / (missing * boundaries)
    return {
        'run': a.run, 'ahead': a.ahead,
        'follows': [follow(a, steps, changes, m[0], end, m[1], fetched)
                    for m, end in zip(marks, ends)],
        'epochs': epochs_of(a, steps, marks, missing),
        'wasted': status['prefetch_wasted'],
        'issued': status['prefetch_issued'],
        'missing': missing,
        # Bytes that came, and that did not have to come, against bytes read.
        'balance': status['origin_bytes'] - status['reread_bytes'] +
        status.get('prefetch_carried_bytes', 0) + status['hit_bytes'] +
        status['direct_hit_bytes'] -
        status.get('admitted_unread_bytes', 0) - load['bytes_read'],
        'stall': load['stall_pct'], 'changes': changes,
    }


def show(m):
    late = [e for e in m['epochs'] if e['epoch'] >= 3]
    for f in m['follows']:
        here = [e['over'] for e in late if e['named'] == f['named']]
        if not f['steps']:
            print('| %s | %.2f | too few steps |' % (m['run'], f['r']))
            continue
        print('| %s | %.2f | %.2f to %.2f | %.0f %% | %.3f | %s | %d of %d '
              '| %d |' % (m['run'], f['r'], f['least'], f['most'],
                          100 * f['off'], f['rate'],
                          ' '.join('%.3f' % x for x in here), m['wasted'],
                          m['issued'], m['balance']))


def collect(a):
    names = sorted(n for n in os.listdir(a.collect) if n.endswith('.run'))
    out = []
    for n in names:
        with open(os.path.join(a.collect, n), encoding='ascii') as f:
            out.append(json.load(f))
    with open(a.json, 'w', encoding='ascii') as f:
        json.dump({'bench': 'plan-auto', 'machine': a.machine, 'runs': out},
                  f, indent=1)


def main():
    p = argparse.ArgumentParser()
    for name in ('run', 'work', 'collect', 'json', 'machine'):
        p.add_argument('--' + name)
    for name in ('step-ms', 'bare-s'):
        p.add_argument('--' + name, type=float)
    for name in ('batch', 'images', 'file-bytes', 'depth', 'ahead'):
        p.add_argument('--' + name, type=int)
    a = p.parse_args()
    if a.collect:
        return collect(a)
    a.step_s = a.step_ms / 1000
    a.window = max(16 * a.batch, 1024) - a.batch
    m = measure(a)
    n = len([x for x in os.listdir(a.work) if x.endswith('.run')])
    with open('%s/%03d.run' % (a.work, n), 'w', encoding='ascii') as f:
        json.dump(m, f)
    if n == 0:
        print('| source, R | R | e | off by over 15 % | step rate / possible '
              '| epochs from the third / ideal | wasted | bytes too many |')
        print('|---|---|---|---|---|---|---|---|')
    show(m)
    return None


sys.exit(main())
