# SPDX-License-Identifier: MIT
"""The plots of doc/echoing.md."""

import plot
from results import FACTORS, Run, median
from tables import (WINDOWS, batch_groups, batches, limits, speed_ups,
                    throughputs)


def by_factor(r, prefix, what, title, label):
    values = [r.values(f'{prefix}e{e}', what) for e in FACTORS]
    base, fresh = median(values[0]), what is Run.fresh
    return plot.columns(
        title, 'echo factor e', label, [str(e) for e in FACTORS],
        {'each seed, and the median': values,
         '1/e~' if fresh else 'as many as at e = 1~':
         [[base / e if fresh else base] for e in FACTORS]}, log=fresh)


def by_name(r, title, x_label, rows):
    return plot.columns(
        title, x_label, 'fresh examples to target',
        [name for name, _ in rows],
        {'each seed, and the median':
         [r.values(group, Run.fresh) or None for _, group in rows],
         'e = 1~': [[r.median('e1', Run.fresh)] for _ in rows]})


def batch_plot(r):
    series = {}
    for k, name in (('before', 'before augmentation'), ('batch', 'batch')):
        rows = []
        for b in batches(r):
            base = r.median(batch_groups(b)['e1'], Run.fresh)
            values = r.values(batch_groups(b)[k], Run.fresh)
            rows.append([v / base for v in values] if base else None)
        series[name] = rows
    series['ideal, 1/4~'] = [[0.25]] * len(batches(r))
    return plot.columns('Fresh examples at e = 4, of those at e = 1',
                        'batch', 'share of e = 1',
                        [str(b) for b in batches(r)], series, log=False)


def curve_plot(r):
    return plot.curves(
        'Held-out accuracy on the way (seed 1)', 'fresh examples',
        'mean of the last five scores',
        {f'e={e}': [(x['fresh'], x['mean']) for x in
                    next(q for q in r.of(f'e{e}') if q.begin['seed'] == 1)
                    .reports if x['mean']] for e in FACTORS})


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
    return plot.columns(
        'Against e = 1, from slow storage', 'echo factor e',
        'ratio to e = 1', names,
        {'throughput': throughput, 'speed-up to target': speed,
         'min(e, R)~': limit,
         'paper: ResNet-50, R about 6, speed-up': paper}, log=False)


# How each is drawn, and the groups of runs without which it is not.
PLOTS = {
    'fresh': (lambda r: by_factor(
        r, '', Run.fresh, 'Fresh examples to 55 %, images',
        'fresh examples'), ('e1',)),
    'steps': (lambda r: by_factor(
        r, '', Run.steps, 'Steps to 55 %, images', 'steps'), ('e1',)),
    'text': (lambda r: by_factor(
        r, 'text-', Run.fresh, 'Fresh records to 1.85 nats a byte, text',
        'fresh records'), ('text-e1',)),
    'point': (lambda r: by_name(
        r, 'Where echoes are made, e = 4', 'echo point',
        [('before', 'e4'), ('after', 'after'), ('batch', 'batch')]),
              ('e1', 'after', 'batch')),
    'window': (lambda r: by_name(
        r, 'The window, e = 4, batch 64', 'window, examples', WINDOWS),
               ('e1', 'window64')),
    'batch': (batch_plot, ('batch16-e1',)),
    'curves': (curve_plot, ('e8',)),
    'slow': (slow_plot, ('slow-e8',)),
}
