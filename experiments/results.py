# SPDX-License-Identifier: MIT
"""The results of the experiments, as run.py collected them."""

import json

FACTORS = (1, 2, 4, 8)
SKIPPED_STEPS = 150  # of a slow run: the first window is filled


def median(values):
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


class Run:
    """A line of the results."""

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
        """To another target, by the same rule."""
        return next((r['fresh'] for r in self.reports
                     if r['mean'] and r['mean'] >= score), None)

    def rate(self):
        """Examples a second, once the first window is filled."""
        a = next(r for r in self.reports if r['step'] >= SKIPPED_STEPS)
        b = self.last
        return (b['served'] - a['served']) / (b['seconds'] - a['seconds'])

    def stall(self):
        a = next(r for r in self.reports if r['step'] >= SKIPPED_STEPS)
        b = self.last
        return (b['waited'] - a['waited']) / (b['seconds'] - a['seconds'])

    def ratio(self):
        """R as the loader measured it, once the first window is filled."""
        return median([r['r'] for r in self.reports
                            if r['step'] >= SKIPPED_STEPS])


class Results:
    def __init__(self, paths):
        self.groups = {}
        for path in paths:
            for line in path.read_text().splitlines():
                run = Run(json.loads(line))
                self.groups.setdefault(run.group, []).append(run)

    def of(self, group):
        return self.groups.get(group, [])

    def values(self, group, what):
        """Of the runs that have one."""
        found = [what(r) for r in self.of(group)]
        return [v for v in found if v is not None]

    def median(self, group, what):
        """None unless all runs have one."""
        v = self.values(group, what)
        return median(v) if v and len(v) == len(self.of(group)) else None
