#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What refrain analyze predicts for half of the dataset cached, beside the same
# trainer over a mount that caches half of it: a trainer whose readers wait for
# each miss, and one whose source is busy all the time. Both sleep instead of
# working; truth and analysis run at the same time, as a machine that has other
# work slows both down. bench/analyze.sh holds forty cells to narrow bars.
set -eu
name=analyze-truth
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3 timeout
bench=$(cd "$(dirname "$0")/../../bench" && pwd)
XDG_CACHE_HOME=$work/xdg
TMPDIR=$work/tmp
PYTHONPATH=$bench
PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME TMPDIR PYTHONPATH PYTHONDONTWRITEBYTECODE
mkdir "$TMPDIR" "$work/data"

"$refrain" make-dataset --classes 2 --images 320 --size 320x240 \
	"$work/data/train" >/dev/null

timeout $((120 * patience)) python3 - "$refrain" "$work" <<'PY' ||
import argparse, os, sys, time
from concurrent.futures import ThreadPoolExecutor

import analyze as bench

refrain, work = sys.argv[1:]
data = work + "/data"
size = sum(os.path.getsize(os.path.join(d, f))
           for d, _, files in os.walk(data) for f in files) / 320
WIDE = 0.15     # the formulas are off by 20 to 35 % here
TRIES = 3
bench.SKIP_S = 2


def command(trainer, top, a, given=bench.command):
    """A lighter loader than that of the bench."""
    if trainer != "load":
        return given(trainer, top, a)
    return [refrain, "load", top + "/train", "--batch", "16", "--echo", "1",
            "--epochs", "1000000", "--threads", "2", "--size", "32",
            "--step-ms", "40", "--no-hash"]


bench.command = command


def predict(a, fault, trainer):
    """Analyse, and save the profile."""
    return bench.analyze(
        a, "--cache", a.tier, "--seconds", "2", "--no-tiny", "--profile",
        a.work + "/profile", *fault, data, "--",
        *bench.command(trainer, "{}", a))


def part(top):
    """What bench's functions take; each trainer has a log of its own."""
    os.makedirs(top + "/mnt")
    return argparse.Namespace(
        refrain=refrain, work=top, mount=top + "/mnt", tier=top, truth=6,
        python=sys.executable, extra=[], speed=bench.Speed(), step_ms=20)


def cell(name, trainer, fault, tries):
    """Predicted against measured."""
    a, b = (part(f"{work}/{name}.{tries}.{k}") for k in "ab")
    with ThreadPoolExecutor(1) as pool:
        true = pool.submit(bench.truth, a, trainer, data, fault, 0.5)
        predict(b, fault, trainer)
        true = true.result()
    now = bench.analyze(a, "--from", b.work + "/profile", "--cached",
                        "%.4f%%" % (100 * true["cached"]))["predicted"]
    off = abs(now["rate"] - true["measured"])
    print(name, true, now)
    # Beyond what the trainer has logged it has read as much as it holds.
    assert trainer == "load" or \
        abs(true["counted"] - true["logged"]) <= 96, true
    return off <= max(now["ci"], WIDE * true["measured"])


def cells(pool, todo, tries):
    """The names of those that are off."""
    done = {n: pool.submit(cell, n, *w, tries) for n, w in todo.items()}
    return {n: todo[n] for n, d in done.items() if not d.result()}


todo = {"waits": ("sl2", ["--fault", "delay=5ms"]),
        "busy": ("load", ["--fault", f"rate={150 * size:.0f}"])}
with ThreadPoolExecutor(2) as pool:
    for tries in range(TRIES):
        todo = todo and cells(pool, todo, tries)
assert not todo, todo
PY
	fail "see above"
[ -z "$(mounts_below "$work")" ] || fail "mounts are left"
echo PASS
