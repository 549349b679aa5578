# SPDX-License-Identifier: MIT
"""The results of the experiments, as collected by run.py."""

import json

FACTORS = (1, 2, 4, 8)
SKIPPED_STEPS = 150  # of a slow run: the first window is filled


def median(values):
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


class Run:
    """One run: a line of the results."""

    def __init__(self, line):
        self.group, self.begin, self.end = (
            line['group'], line['begin'], line['end'])
        self.store = line.get('store')
        self.reports = [dict(zip(line['columns'], row))
                        for row in line['reports']]
        self.last = self.reports[-1]
        self.reached = self.end['reached']

    def fresh(self):
        return self.last['fresh'] if self.reached else None

    def steps(self):
        return self.last['step'] if self.reached else None

    def fresh_to(self, score):
        """Fresh examples to another target, by the same rule."""
        return next((r['fresh'] for r in self.reports
                     if r['mean'] and r['mean'] >= score), None)

    def since(self, what):
        """Growth of a column in a slow run, after the first window is full."""
        first = next(r for r in self.reports if r['step'] >= SKIPPED_STEPS)
        return self.last[what] - first[what]

    def rate(self):
        """Examples a second."""
        return self.since('served') / self.since('seconds')

    def stall(self):
        return self.since('waited') / self.since('seconds')

    def step_s(self):
        return self.since('seconds') / self.since('step')

    def work_s(self):
        """Time of a step without waiting: t_downstream."""
        return (self.since('seconds') - self.since('waited')) / self.since(
            'step')


class Results:
    def __init__(self, paths):
        self.groups = {}
        for path in paths:
            for line in path.read_text().splitlines():
                run = Run(json.loads(line))
                self.groups.setdefault(run.group, []).append(run)

    def of(self, group):
        return self.groups.get(group, [])

    def pairs(self, group, base):
        """Runs of both at the same seed."""
        seeds = {r.begin['seed']: r for r in self.of(base)}
        return [(r, seeds[r.begin['seed']]) for r in self.of(group)
                if r.begin['seed'] in seeds]

    def values(self, group, what):
        """Values of the runs that have one."""
        found = [what(r) for r in self.of(group)]
        return [v for v in found if v is not None]

    def median(self, group, what):
        """The median; None unless all runs have a value."""
        v = self.values(group, what)
        return median(v) if v and len(v) == len(self.of(group)) else None
