#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What bench/speeds.sh has measured: the logs of a run as a table and JSON."""
import argparse
import json
import sys

WINDOW = 992    # fresh examples: the default window less a batch
ECHO_MAX = 4
LATE = 3        # windows after a change that are ignored


def rows(path):
    """Of whole lines: the last may be cut."""
    with open(path, encoding='ascii') as f:
        return [line.split() for line in f if line.endswith('\n')]


def factor_at(changes, step):
    e = 1.0
    for begins, now in changes:
        if step >= begins:
            e = now
    return e


def measure(steps, changes, begin, end, r, step_s):
    """From LATE windows after `begin` to `end`; None: there is no such step."""
    fresh = late = 0
    for n, (at, of_them) in enumerate(steps):
        if at >= begin:
            fresh += of_them
        if fresh >= LATE * WINDOW:
            late = n
            break
    last = max((n for n, s in enumerate(steps) if s[0] < end), default=0)
    if not late or last - late < 10:
        return None
    want = min(max(r, 1), ECHO_MAX)
    factors = [factor_at(changes, n) for n in range(late, last + 1)]
    rate = (last - late) / (steps[last][0] - steps[late][0])
    return {
        'r': r, 'steps': last - late, 'least': min(factors),
        'most': max(factors),
        'off': sum(abs(e - want) > .15 * want for e in factors) /
               len(factors),
        'rate': rate / min(1 / step_s, ECHO_MAX / (r * step_s)),
    }


def main():
    p = argparse.ArgumentParser()
    for name in ('marks', 'changes', 'steps', 'machine', 'json'):
        p.add_argument('--' + name, required=True)
    p.add_argument('--step-ms', type=float, required=True)
    p.add_argument('--batch', type=int, required=True)
    a = p.parse_args()
    marks = [(int(f[0]) / 1e9, float(f[1])) for f in rows(a.marks)]
    steps = [(int(f[1]) / 1e6, int(f[3])) for f in rows(a.steps)]
    changes = []
    for step, e in rows(a.changes):
        p_, q = e.split('/')
        changes.append((int(step), int(p_) / int(q)))
    if not steps:
        sys.exit('speeds: the trainer made no step')
    ends = [m[0] for m in marks[1:]] + [steps[-1][0]]
    out = []
    print('| R | steps | e | off by over 15 % | step rate / possible |')
    print('|---|---|---|---|---|')
    for (begin, r), end in zip(marks, ends):
        m = measure(steps, changes, begin, end, r, a.step_ms / 1000)
        if not m:
            print('| %g | too few | | | |' % r)
            continue
        out.append(m)
        print('| %g | %d | %.2f to %.2f | %.0f %% | %.3f |' % (
            r, m['steps'], m['least'], m['most'], 100 * m['off'], m['rate']))
    with open(a.json, 'w', encoding='ascii') as f:
        json.dump({'bench': 'speeds', 'machine': a.machine,
                   'step_ms': a.step_ms, 'batch': a.batch, 'speeds': out,
                   'changes': changes}, f, indent=1)


main()
