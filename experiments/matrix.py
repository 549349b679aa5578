# SPDX-License-Identifier: MIT
"""The runs of the experiments, as data. Each varies one factor of a base case.

A run is a dict: `id`, `group` (runs that are plotted together), `stage` (runs
that are done together) and `options` of echo-train. A learning rate is a number,
or the name of a group of trials. The run then uses the rate of the trial that
needed the fewest fresh examples to the target, at a seed that no run uses.

A run on slow storage repeats another run (`like`) for the same number of steps,
without scoring. The same seed gives the same model on any storage, so the time
of these steps is the time to the target. The delay of its storage is chosen so
that the ratio R of upstream to trainer is about `ratio` at e = 1, given the
trainer's speed in the control run of the same seed.
"""

TUNING_SEED = 100
SEEDS = (1, 2, 3)
TARGET = 0.55
RATES = (0.015, 0.03, 0.06, 0.12)
SERVED = 4500 * 64  # at most, to the target

IMAGES = {'width': 12, 'size': 24, 'batch': 64}
TEXT = {'width': 64, 'batch': 64, 'target': 1.85, 'epochs': 100,
        'steps': 3000}
TEXT_RATES = (0.4, 0.8, 1.6)


def run(stage, group, seed, options, rate):
    trial = f'-lr{rate}' if group.startswith('trial-') else ''
    return {'id': f'{group}-seed{seed}{trial}', 'stage': stage, 'group': group,
            'options': dict(options, seed=seed), 'rate': rate}


def tuned(stage, group, options, rates, seeds=SEEDS):
    """Trials at each rate, then runs at the best rate."""
    trials = [run(stage + ' trials', 'trial-' + group, TUNING_SEED, options,
                  rate) for rate in rates]
    return trials + [run(stage, group, seed, options, 'trial-' + group)
                     for seed in seeds]


def images(**changes):
    options = dict(IMAGES, target=TARGET, epochs=100)
    options.update(changes)
    return dict(options, steps=SERVED // options['batch'])


def factors():
    """The echo factor, with the base case otherwise."""
    runs = []
    for e in (1, 2, 4, 8):
        runs += tuned('factor', f'e{e}', images(echo=e), RATES)
    return runs


def points():
    runs = []
    for point in ('after', 'batch'):
        runs += tuned('point', point, images(echo=4, point=point), RATES)
    return runs


def windows():
    """The window, at the learning rate of the base case."""
    runs = []
    for name, change in (
            ('window4096', {'window': 4096}),
            ('window448', {'window': 448}),  # the least without duplicates
            ('window192', {'window': 192, 'allow-duplicates': True}),
            ('window64', {'window': 64, 'allow-duplicates': True})):
        runs += [run('window', name, seed, images(echo=4, **change),
                     'trial-e4') for seed in SEEDS]
    return runs


def batches(batch):
    """The batch size; each is compared with e = 1 at the same size."""
    middle = 0.06 * batch / 64 if batch < 64 else 0.12
    rates = [round(middle * by, 6) for by in (0.5, 1, 2)]
    runs = []
    for name, change in ((f'batch{batch}-e1', {'echo': 1}),
                         (f'batch{batch}-before', {'echo': 4}),
                         (f'batch{batch}-batch',
                          {'echo': 4, 'point': 'batch'})):
        options = images(batch=batch, **change)
        # 16 batches; the library's least default is 1024.
        if name.endswith('before'):
            options['window'] = 16 * batch
        runs += tuned(f'batch {batch}', name, options, rates)
    return runs


def final():
    """Equal fresh data and a decreasing learning rate; scored on the test set."""
    runs = []
    for e in (1, 2, 4):
        options = dict(IMAGES, echo=e, schedule='linear')
        # 0.03 was so much worse that it was not tried at e = 4.
        rates = (0.06, 0.12, 0.24) if e == 4 else (0.03, 0.06, 0.12, 0.24)
        trials = [run('final trials', f'trial-final-e{e}', TUNING_SEED,
                      dict(options, epochs=1), rate) for rate in rates]
        runs += trials + [run('final', f'final-e{e}', seed,
                              dict(options, epochs=2),
                              f'trial-final-e{e}') for seed in SEEDS]
    return runs


def text():
    runs = []
    for e in (1, 2, 4, 8):
        runs += tuned('text', f'text-e{e}', dict(TEXT, text=True, echo=e,
                                                 decay=0), TEXT_RATES)
    return runs


def slow(seed, like, most, variants):
    """Slow storage, and controls with fast storage; one run at a time."""
    runs = []
    for name, e, ratio in variants:
        r = run(f'slow {seed}', f'slow-{name}', seed,
                dict(IMAGES, echo=e, epochs=100, blind=True), None)
        if e == 'auto':
            r['options']['echo-max'] = 8
        r.update(like=f'{like}{1 if e == "auto" else e}-seed{seed}',
                 ratio=ratio, most=600 if e == 'auto' else most)
        runs.append(r)
    return runs


# Name, e, and R; without an R there is no mount.
SLOW = (('control-e1', 1, 0), ('control-e4', 4, 0), ('e1', 1, 4),
        ('e2', 2, 4), ('e4', 4, 4), ('e8', 8, 4), ('auto', 'auto', 4),
        ('plain-e1', 1, None), ('plain-e4', 4, None))


def in_stages(runs):
    """Trials before the runs that use their rates; otherwise as given."""
    stages = {}
    for r in runs:
        if r['stage'].endswith('trials'):
            stages.setdefault(r['stage'], []).append(r)
    for r in runs:
        if not r['stage'].endswith('trials'):
            stages.setdefault(r['stage'], []).append(r)
    # Seed by seed, so that what is cut off lacks a seed and no variant.
    return [sorted(s, key=lambda r: r['options']['seed'])
            for s in stages.values()]


def whole():
    """All runs, the most important first."""
    stages = []
    for part in (factors(), points(), windows(), text(), batches(16),
                 final(), batches(256)):
        stages += in_stages(part)
    return stages + [slow(seed, 'e', None, SLOW) for seed in SEEDS]


def smoke(made):
    """A small run for each claim, with one seed, within a minute. `made`: on
    generated images, which are easier to learn."""
    base = dict(images(), width=8, size=16, target=0.97 if made else 0.4,
                steps=800)
    base['report-every'] = 1600
    variants = (('e1', {'echo': 1}), ('e2', {'echo': 2}),
                ('e4', {'echo': 4}),
                ('window64', {'echo': 4, 'window': 64,
                              'allow-duplicates': True}))
    return [[run('smoke', 'smoke-' + name, 1, dict(base, **change), 0.05)
             for name, change in variants],
            slow(1, 'smoke-e', 200, (SLOW[0], SLOW[2], SLOW[4]))]
