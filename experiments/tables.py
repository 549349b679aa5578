# SPDX-License-Identifier: MIT
"""The tables of doc/echoing.md, and the verdicts of the smallest size."""

from results import FACTORS, Run, median

INFINITE = float('inf')  # of what was never reached


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |',
             '|' + '|'.join(' --- ' for _ in head) + '|']
    lines += ['| ' + ' | '.join(str(c) for c in row) + ' |' for row in rows]
    return '\n'.join(lines)


def spread(results, group, what, form='{:.0f}'):
    """median (least-most), and how many seeds never came there."""
    v = results.values(group, what)
    missing = len(results.of(group)) - len(v)
    note = f', {missing} not reached' if missing else ''
    if not v:
        return f'not reached ({missing} runs)' if missing else 'not run'
    low, mid, high = (form.format(x) for x in
                      (min(v), median(v), max(v)))
    return f'{mid} ({low}–{high}){note}'


def share(results, group, base, what):
    a, b = results.median(group, what), results.median(base, what)
    return f'{a / b:.2f}' if a and b else '–'


def rate_of(results, group):
    runs = results.of(group)
    return f'{runs[0].begin["lr"]:g}' if runs else '–'


def to_target(results, rows, first):
    """Rows of (name, group, group to compare with)."""
    return table(
        (first, 'learning rate', 'fresh to target: median (min–max)',
         'share of e = 1', 'steps to target', 'steps, share of e = 1'),
        [(name, rate_of(results, group), spread(results, group, Run.fresh),
          share(results, group, base, Run.fresh),
          spread(results, group, Run.steps),
          share(results, group, base, Run.steps))
         for name, group, base in rows])


def factor_table(r):
    return to_target(r, [(f'e = {e}', f'e{e}', 'e1') for e in FACTORS],
                     'echo factor')


def point_table(r):
    return to_target(r, [('before augmentation', 'e4', 'e1'),
                         ('after augmentation', 'after', 'e1'),
                         ('batch', 'batch', 'e1')], 'point, e = 4')


WINDOWS = (('64', 'window64'), ('192', 'window192'), ('448', 'window448'),
           ('1024', 'e4'), ('4096', 'window4096'))


def duplicates(run):
    s = run.end['stats']
    return 1000 * s['in_batch_duplicates'] / s['served']


def window_table(r):
    return table(
        ('window, e = 4', 'duplicates in a batch, per 1000 served',
         'mean lag, steps', 'fresh to target: median (min–max)',
         'share of e = 1'),
        [(name, spread(r, group, duplicates, '{:.1f}'),
          spread(r, group, lambda x: x.end['stats']['mean_lag_steps'],
                 '{:.1f}'),
          spread(r, group, Run.fresh), share(r, group, 'e1', Run.fresh))
         for name, group in WINDOWS])


def batch_groups(batch):
    if batch == 64:
        return {'e1': 'e1', 'before': 'e4', 'batch': 'batch'}
    return {k: f'batch{batch}-{k}' for k in ('e1', 'before', 'batch')}


def batch_table(r):
    rows = []
    for batch in (16, 64, 256):
        g = batch_groups(batch)
        rows += [(f'{batch}, {name}', g[k], g['e1'])
                 for k, name in (('e1', 'e = 1'),
                                 ('before', 'e = 4 before augmentation'),
                                 ('batch', 'e = 4 batch'))]
    return to_target(r, rows, 'batch')


def text_table(r):
    return to_target(r, [(f'e = {e}', f'text-e{e}', 'text-e1')
                         for e in FACTORS], 'text')


def final_table(r):
    return table(
        ('echo factor', 'highest learning rate', 'fresh', 'steps',
         'test accuracy, %: median (min–max)'),
        [(f'e = {e}', rate_of(r, f'final-e{e}'),
          spread(r, f'final-e{e}', lambda x: x.last['fresh']),
          spread(r, f'final-e{e}', lambda x: x.last['step']),
          spread(r, f'final-e{e}', lambda x: 100 * x.end['test'], '{:.1f}'))
         for e in (1, 2, 4)])


def targets_table(r):
    scores = (0.45, 0.5, 0.525, 0.55)
    return table(
        ('target',) + tuple(f'e = {e}' for e in FACTORS),
        [(f'{100 * s:g} %',) + tuple(
            spread(r, f'e{e}', lambda x, s=s: x.fresh_to(s)) for e in FACTORS)
         for s in scores])


def trial_table(r):
    rows = []
    for group in r.groups:
        if not group.startswith('trial-'):
            continue
        for run in sorted(r.of(group), key=lambda x: x.begin['lr']):
            final = run.begin['schedule'] == 'linear'
            rows.append((group.removeprefix('trial-'),
                         f'{run.begin["lr"]:g}',
                         '–' if final else run.fresh() or 'not reached',
                         f'{run.last["score"]:.4f}'))
    return table(('variant', 'learning rate', 'fresh to target',
                  'last score'), rows)


def counts_table(r):
    """What the loader counted, and what it had to be."""
    rows = []
    for e in FACTORS:
        s = [x.end['stats'] for x in r.of(f'e{e}')]
        if s:
            ahead = max(x['decodes'] - x['fresh'] for x in s)
            rows.append((f'e = {e}', sum(x['served'] for x in s),
                         sum(x['fresh'] for x in s),
                         sum(x['decodes'] for x in s),
                         sum(x['files_read'] for x in s), ahead,
                         sum(x['redecodes'] for x in s)))
    return table(('three runs', 'served', 'fresh', 'decodes', 'files read',
                  'most decoded ahead', 'decoded again'), rows)


SLOW = (('e = 1', 'e1', 1), ('e = 2', 'e2', 2), ('e = 4', 'e4', 4),
        ('e = 8', 'e8', 8), ('auto', 'auto', None))


def ceiling(results, e, base):
    """min(e, R), with the R of the run at e = 1."""
    ratio = results.median(base, Run.ratio)
    return min(e, ratio) if ratio and e else ratio


def slow_table(r):
    rows = []
    for name, g, e in SLOW + (('e = 1, no delay', 'control-e1', 1),
                              ('e = 4, no delay', 'control-e4', 4)):
        group = 'slow-' + g
        base = 'slow-control-e1' if 'control' in g else 'slow-e1'
        limit = ceiling(r, e, base)
        if 'control' in g:
            limit = 1
        rows.append((
            name, spread(r, group, lambda x: x.store['delay_ms']),
            spread(r, group, Run.ratio, '{:.2f}'),
            spread(r, group, lambda x: x.last['echo_factor'], '{:.2f}'),
            spread(r, group, Run.rate),
            share(r, group, base, Run.rate),
            f'{limit:.2f}' if limit else '–',
            spread(r, group, lambda x: 100 * x.stall(), '{:.0f}')))
    return table(('', 'delay, ms', 'R', 'e', 'examples a second',
                  'throughput, ratio to e = 1', 'min(e, R)', 'stall, %'),
                 rows)


def speed_table(r):
    """Speed-up to the target, and what it is the product of."""
    rows = []
    for name, g, e in SLOW[:-1] + (('e = 1, no delay', 'control-e1', 1),
                                   ('e = 4, no delay', 'control-e4', 4)):
        group, base = 'slow-' + g, ('slow-control-e1' if 'control' in g
                                    else 'slow-e1')
        wall = (lambda x: x.last['seconds'])
        a, b = r.median(base, Run.rate), r.median(group, Run.rate)
        s, t = r.median('e1', Run.steps), r.median(f'e{e}', Run.steps)
        w, v = r.median(base, wall), r.median(group, wall)
        rows.append((name, spread(r, group, wall, '{:.1f}'),
                     f'{b / a:.2f}' if a and b else '–',
                     f'{s / t:.2f}' if s and t else '–',
                     f'{w / v:.2f}' if w and v else '–'))
    return table(('', 'seconds to target: median (min–max)',
                  'throughput ratio', 'statistical factor',
                  'speed-up to target'), rows)


# -- The paper's claims beside ours --------------------------------------------

def fewer(r, group, base, what=Run.fresh):
    """Does the group need less? By all seeds, by the medians, or not."""
    a, b = ([what(x) or INFINITE for x in r.of(g)] for g in (group, base))
    if not a or not b:
        return 'not run'
    if max(a) < min(b):
        return 'yes, by all seeds'
    return 'by the medians only' if median(a) < median(b) else 'no'


def of_one(r, group, base='e1'):
    return f'{share(r, group, base, Run.fresh)} of e = 1'


def claim_table(r):
    final = {e: [100 * x.end['test'] for x in r.of(f'final-e{e}')]
             for e in (1, 2, 4)}
    slow = {e: r.median(f'slow-e{e}', lambda x: x.last['seconds'])
            for e in (1, 2, 4, 8)}
    rows = [
        ('e = 2 needs fewer fresh examples, in all cases but one',
         of_one(r, 'e2'), fewer(r, 'e2', 'e1')),
        ('so does e = 4', of_one(r, 'e4'), fewer(r, 'e4', 'e1')),
        ('the best e of LM1B is between 4 and 8: does e = 8 need fewer than '
         'e = 4?', of_one(r, 'e8') + f', e = 4: {of_one(r, "e4")}',
         fewer(r, 'e8', 'e4')),
        ('echoes before augmentation need fewer than after',
         of_one(r, 'e4') + f', after: {of_one(r, "after")}',
         fewer(r, 'e4', 'after')),
        ('and than batch echoes', f'batch: {of_one(r, "batch")}',
         fewer(r, 'e4', 'batch')),
        ('more shuffling (a window of 1024 against the least, 448) needs '
         'fewer', f'448: {of_one(r, "window448")}',
         fewer(r, 'e4', 'window448')),
        ('(4096 against 1024)', f'4096: {of_one(r, "window4096")}',
         fewer(r, 'window4096', 'e4')),
        ('batch echoes gain with the batch: batch 16',
         of_one(r, 'batch16-batch', 'batch16-e1'),
         fewer(r, 'batch16-batch', 'batch16-e1')),
        ('batch 64', of_one(r, 'batch', 'e1'), fewer(r, 'batch', 'e1')),
        ('batch 256', of_one(r, 'batch256-batch', 'batch256-e1'),
         fewer(r, 'batch256-batch', 'batch256-e1')),
        ('text: e = 4 needs fewer', of_one(r, 'text-e4', 'text-e1'),
         fewer(r, 'text-e4', 'text-e1')),
    ]
    if all(final.values()):
        rows.append(('no harm to the final quality at equal fresh data',
                     ', '.join(f'e = {e}: {median(final[e]):.1f} %'
                               for e in final),
                     'yes' if min(median(final[2]), median(final[4])) >=
                     median(final[1]) else 'no'))
    if all(slow.values()):
        best = max((2, 4, 8), key=lambda e: slow[1] / slow[e])
        gain = slow[1] / slow[best]
        limit = ceiling(r, best, 'slow-e1')
        rows.append(('3.25 times faster to the target at e = 5, where R was '
                     'about 6: 65 % of min(e, R)',
                     f'{gain:.2f} at e = {best}: {100 * gain / limit:.0f} % '
                     'of min(e, R)', 'yes' if gain > 2 else 'no'))
    return table(('the paper', 'ours, e = 4 unless said (medians)',
                  'does ours agree?'), rows)


TABLES = {
    'claims': claim_table,
    'factor': factor_table, 'point': point_table, 'window': window_table,
    'batch': batch_table, 'final': final_table, 'text': text_table,
    'targets': targets_table, 'trials': trial_table, 'counts': counts_table,
    'slow': slow_table, 'speed': speed_table,
}


# -- The smallest size --------------------------------------------------------

def verdicts(r):
    """The directions that one seed shows: (claim, figure, does it hold)."""
    def of(group, what):
        return r.median('smoke-' + group, what)

    one, two, four = (of(f'e{e}', Run.fresh) for e in (1, 2, 4))
    small = of('window64', lambda x: x.last['fresh'])  # or more
    slow1, slow4 = (r.median(f'slow-e{e}', Run.rate) for e in (1, 4))
    share2, share4 = (v / one if v and one else 9 for v in (two, four))
    return [
        ('fresh examples at e = 2, of those at e = 1', share2, share2 < 0.75),
        ('fresh examples at e = 4, of those at e = 1', share4, share4 < 0.5),
        ('fresh examples with a window of one batch, of those with 16 '
         '(or more)',
         small / four if small and four else 0,
         bool(small and four) and small > 1.1 * four),
        ('throughput from slow storage at e = 4, of that at e = 1',
         slow4 / slow1 if slow1 and slow4 else 0,
         bool(slow1 and slow4) and slow4 > 2.5 * slow1)]
