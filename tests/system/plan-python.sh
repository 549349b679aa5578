#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The helper for Python, refrain_plan: a sampler whose order is planned, with a
# mount and without one, and plans of several epochs.
set -eu
name=plan-python
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/plan-lib.sh
. "$(dirname "$0")/plan-lib.sh"

half_fits
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tools python3 - "$mnt" "$src" \
	"$work/names" <<'END' || fail 'the helper for Python'
import os, random, sys
import refrain_plan
mnt, src, order = sys.argv[1:]
names = [n.rstrip('\n') for n in open(order)]

class Random:
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return self.n
    def __iter__(self):
        return iter(random.sample(range(self.n), self.n))

# Without a mount, nothing happens.
s = refrain_plan.PlannedSampler(
    Random(len(names)), [os.path.join(src, n) for n in names])
assert not s.plan.active and sorted(s) == list(range(len(names)))

s = refrain_plan.PlannedSampler(
    Random(len(names)), [os.path.join(mnt, n) for n in names], batch=16)
assert s.plan.active and len(s) == len(names)
for epoch in range(2):
    seen = []
    for i in s:
        assert len(open(os.path.join(mnt, names[i]), 'rb').read()) == 50000
        seen.append(i)
    assert sorted(seen) == list(range(len(names)))
assert s.plan.flush(10)
assert s.plan.error is None and s.plan.left_out == 0, s.plan.error
s.plan.close()

with refrain_plan.Plan(os.path.join(mnt, 'd'), batch=4, echo=2.5) as p:
    p.epoch(0, (os.path.basename(n) for n in names))
    p.epoch(1, [os.path.join(mnt, 'd', 'none'), '/etc/passwd'])
    p.progress(17)
    assert p.flush(10) and p.left_out == 2, (p.left_out, p.error)
with refrain_plan.Plan(mnt, window=1, batch=9, echo=4) as p:
    p.flush(10)
    assert 'window' in p.error, p.error
END
no_plan
stop_mount
