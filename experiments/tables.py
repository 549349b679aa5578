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
    """median (least-most), and how many seeds did not reach the target."""
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
         'mean lag, steps', 'served for each fresh, at the target',
         'fresh to target: median (min–max)', 'share of e = 1',
         'steps, share of e = 1'),
        [(name, spread(r, group, duplicates, '{:.1f}'),
          spread(r, group, lambda x: x.end['stats']['mean_lag_steps'],
                 '{:.1f}'),
          spread(r, group, lambda x: x.last['served'] / x.last['fresh'],
                 '{:.2f}'),
          spread(r, group, Run.fresh), share(r, group, 'e1', Run.fresh),
          share(r, group, 'e1', Run.steps))
         for name, group in WINDOWS])


def batch_groups(batch):
    if batch == 64:
        return {'e1': 'e1', 'before': 'e4', 'batch': 'batch'}
    return {k: f'batch{batch}-{k}' for k in ('e1', 'before', 'batch')}


def batches(r):
    """Batch sizes for which all variants were run."""
    return [b for b in (16, 64, 256)
            if all(r.of(g) for g in batch_groups(b).values())]


def batch_table(r):
    rows = []
    for batch in batches(r):
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
    """What the loader counted."""
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


CONTROLS = (('e = 1, no delay', 'control-e1', 1),
            ('e = 4, no delay', 'control-e4', 4),
            ('e = 1, no mount', 'plain-e1', 1),
            ('e = 4, no mount', 'plain-e4', 4))


def base_of(group):
    kind = next((k for k in ('control-', 'plain-') if k in group), '')
    return f'slow-{kind}e1'


def ratio(run, one):
    """R. With a delay, the upstream's time is that of a step at e = 1. The
    trainer's time is from this run, because the machine's speed varies.
    Without a delay, R is what the loader measured."""
    if not run.store['delay_ms']:
        return median([x['r'] for x in run.reports])
    return one.step_s() / run.work_s()


def limits(r, group, e):
    """min(e, R) at each seed, and at least 1."""
    return [max(1, min(e or 9, ratio(run, one)))
            for run, one in r.pairs('slow-' + group, base_of(group))]


def range_of(values, form='{:.2f}'):
    if not values:
        return 'not run'
    low, mid, high = (form.format(x) for x in
                      (min(values), median(values), max(values)))
    return f'{mid} ({low}–{high})'


def throughputs(r, group):
    return [run.rate() / one.rate()
            for run, one in r.pairs('slow-' + group, base_of(group))]


def slow_table(r):
    rows = []
    for name, g, e in SLOW + CONTROLS:
        group = 'slow-' + g
        pairs = r.pairs(group, base_of(g))
        rows.append((
            name, spread(r, group, lambda x: x.store['delay_ms']),
            range_of([1000 * x.work_s() for x, _ in pairs], '{:.1f}'),
            range_of([ratio(x, one) for x, one in pairs]),
            spread(r, group, lambda x: x.since('served') / x.since('fresh'),
                   '{:.2f}'),
            spread(r, group, Run.rate), range_of(throughputs(r, g)),
            range_of(limits(r, g, e)),
            spread(r, group, lambda x: 100 * x.stall(), '{:.0f}')))
    return table(('', 'delay, ms', 't_downstream, ms', 'R',
                  'served for each fresh', 'examples a second',
                  'throughput ratio', 'min(e, R)', 'stall, %'), rows)


def speed_ups(r, group):
    return [one.last['seconds'] / run.last['seconds']
            for run, one in r.pairs('slow-' + group, base_of(group))]


def speed_table(r):
    """The speed-up to the target and its two factors."""
    rows = []
    for name, g, e in SLOW[:-1] + CONTROLS:
        group = 'slow-' + g
        steps = [one.last['step'] / run.last['step']
                 for run, one in r.pairs(group, base_of(g))]
        rows.append((name, spread(r, group, lambda x: x.last['seconds'],
                                  '{:.1f}'),
                     range_of(throughputs(r, g)), range_of(steps),
                     range_of(speed_ups(r, g))))
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


def gain_row(r):
    """Is the share of e = 1 less with each larger batch?"""
    shares = {}
    for batch in batches(r):
        g = batch_groups(batch)
        a, b = (r.median(g[k], Run.fresh) for k in ('batch', 'e1'))
        if a and b:
            shares[batch] = a / b
    found = list(shares.values())
    return ('batch echoes gain on e = 1 as the batch grows',
            ', '.join(f'batch {b}: {v:.2f}' for b, v in shares.items()),
            'yes, at each step' if found == sorted(found, reverse=True)
            else 'from the least to the largest' if found[-1] < found[0]
            else 'no')


def claim_table(r):
    final = {e: [100 * x.end['test'] for x in r.of(f'final-e{e}')]
             for e in (1, 2, 4)}
    slow = {e: speed_ups(r, f'e{e}') for e in (2, 4, 8)}
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
        ('and 4096 against 1024?', f'4096: {of_one(r, "window4096")}',
         fewer(r, 'window4096', 'e4')),
        ('and 1024 against 192, where the lag is 3 steps?',
         f'192: {of_one(r, "window192")}', fewer(r, 'e4', 'window192')),
        ('at a small batch, 16, before augmentation needs fewer than batch '
         'echoes', of_one(r, 'batch16-before', 'batch16-e1') + ', batch: ' +
         of_one(r, 'batch16-batch', 'batch16-e1'),
         fewer(r, 'batch16-before', 'batch16-batch')),
        gain_row(r),
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
        best = max(slow, key=lambda e: median(slow[e]))
        gain = median(slow[best])
        limit = median(limits(r, f'e{best}', best))
        rows.append(('3.25 times faster to the target at e = 5, where R was '
                     'about 6: 65 % of min(e, R)',
                     f'{gain:.2f} at e = {best}: {100 * gain / limit:.0f} % '
                     f'of min(e, R), {limit:.2f}',
                     'yes' if gain > 2 else 'no'))
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
    """What one seed shows: (claim, figure, whether it holds)."""
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
