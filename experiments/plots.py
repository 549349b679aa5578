# SPDX-License-Identifier: MIT
"""The plots of doc/echoing.md."""

import os
import sys

sys.path.insert(0, os.path.join(
    os.path.dirname(os.path.abspath(__file__)), '..', 'bench'))

import draw  # noqa: E402
from results import FACTORS, Run, median
from tables import (WINDOWS, batch_groups, batches, limits, speed_ups,
                    throughputs)


SEEDS = 'median of the seeds (dots)'


def share(r, group, base, what):
    return r.median(group, what) / r.median(base, what)


def by_factor(r, prefix, what, title, label):
    values = [r.values(f'{prefix}e{e}', what) for e in FACTORS]
    base, fresh = median(values[0]), what is Run.fresh
    return draw.columns(
        title, 'echo factor e', label, [str(e) for e in FACTORS],
        {SEEDS: values,
         'if echoes were as good as fresh~' if fresh else
         'as many as at e = 1~':
         [[base / e if fresh else base] for e in FACTORS]}, 'log')


def fresh_plot(r):
    part = share(r, 'e4', 'e1', Run.fresh)
    return by_factor(
        r, '', Run.fresh, f'With e = 4, {100 * part:.0f} % of the fresh '
        'examples suffice to reach 55 % accuracy',
        'fresh examples to the target')


def steps_plot(r):
    more = [share(r, f'e{e}', 'e1', Run.steps) for e in (4, 8)]
    return by_factor(
        r, '', Run.steps, f'Echoes cost steps: {more[0]:.2f} times as many at '
        f'e = 4, {more[1]:.2f} at e = 8', 'steps to the target')


def text_plot(r):
    part = share(r, 'text-e4', 'text-e1', Run.fresh)
    return by_factor(
        r, 'text-', Run.fresh, f'Text: with e = 4, {100 * part:.0f} % of the '
        'fresh records suffice to reach 1.85 nats a byte',
        'fresh records to the target')


def by_name(r, title, x_label, rows, across='even'):
    return draw.columns(
        title, x_label, 'fresh examples to the target',
        [name for name, _ in rows],
        {SEEDS:
         [r.values(group, Run.fresh) or None for _, group in rows],
         'e = 1~': [[r.median('e1', Run.fresh)] for _ in rows]}, across)


def batch_plot(r):
    series = {}
    for k, name in (('before', 'before augmentation'), ('batch', 'batch')):
        rows = []
        for b in batches(r):
            base = r.median(batch_groups(b)['e1'], Run.fresh)
            values = r.values(batch_groups(b)[k], Run.fresh)
            rows.append([v / base for v in values] if base else None)
        series[name] = rows
    series['1/4~'] = [[0.25]] * len(batches(r))
    return draw.columns('Echoes before augmentation save more than batch '
                        'echoes at every batch size (e = 4)',
                        'batch size',
                        'fresh examples to the target, share of e = 1',
                        [str(b) for b in batches(r)], series, 'log')


def curve_plot(r):
    return draw.curves(
        'The higher e is, the fewer fresh examples an accuracy takes (seed 1)',
        'fresh examples', 'accuracy on held-out images, mean of five scores',
        {f'e = {e}': [(x['fresh'], x['mean']) for x in
                      next(q for q in r.of(f'e{e}')
                           if q.begin['seed'] == 1).reports if x['mean']]
         for e in FACTORS})


def slow_plot(r):
    """Relative to e = 1 of the same seed; the paper's one point beside."""
    names = [str(e) for e in FACTORS]
    found = [[of(r, f'e{e}') or None for e in FACTORS]
             for of in (throughputs, speed_ups)]
    found.append([[median(limits(r, f'e{e}', e))] for e in FACTORS])
    where = names.index('4') + 1
    names.insert(where, '5')
    for rows in found:
        rows.insert(where, None)
    throughput, speed, limit = found
    paper = [[3.25] if n == '5' else None for n in names]
    return draw.columns(
        'From slow storage, throughput follows min(e, R); '
        'training is faster by less', 'echo factor e',
        'ratio to e = 1', names,
        {'throughput': throughput, 'speed-up to the target': speed,
         'min(e, R)~': limit,
         "the paper's speed-up": paper}, 'log')


# How each is drawn, and the groups of runs without which it is not.
PLOTS = {
    'fresh': (fresh_plot, ('e1',)),
    'steps': (steps_plot, ('e1',)),
    'text': (text_plot, ('text-e1',)),
    'point': (lambda r: by_name(
        r, 'Echoes before augmentation need the fewest fresh examples (e = 4)',
        'echo point', [('before', 'e4'), ('after', 'after'),
                       ('batch', 'batch')]),
              ('e1', 'after', 'batch')),
    'window': (lambda r: by_name(
        r, 'From 448 examples on, the size of the window makes little '
        'difference (e = 4, batch 64)', 'window, examples', WINDOWS, 'log'),
               ('e1', 'window64')),
    'batch': (batch_plot, ('batch16-e1',)),
    'curves': (curve_plot, ('e8',)),
    'slow': (slow_plot, ('slow-e8',)),
}
