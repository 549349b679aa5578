# SPDX-License-Identifier: MIT
"""REFRAIN WORK NAME: compare the prediction of `refrain analyze` for a cache
with half of the dataset with the rate of the same trainer over a mount that
caches half of it. Truth and analysis run at the same time, because other
programs on the machine slow both down. bench/analyze.sh checks forty cases
with narrow limits."""
import argparse, os, sys
from concurrent.futures import ThreadPoolExecutor

import analyze as bench

refrain, work, name = sys.argv[1:]
data = work + "/data"
size = sum(os.path.getsize(os.path.join(d, f))
           for d, _, files in os.walk(data) for f in files) / 320
# limit of the error for a case in which the formulas are off by 20 to 35 %
WIDE = 0.15
TRIES = 3
bench.SKIP_S = 2


def command(trainer, top, a, given=bench.command):
    """Return a command with a lighter loader than that of the benchmark."""
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
    """Return settings for functions of the benchmark; each trainer has its own
    log."""
    os.makedirs(top + "/mnt")
    return argparse.Namespace(
        refrain=refrain, work=top, mount=top + "/mnt", tier=top, truth=6,
        python=sys.executable, extra=[], speed=bench.Speed(), step_ms=20)


def cell(name, trainer, fault, tries):
    """Compare the predicted with the measured rate."""
    a, b = (part(f"{work}/{name}.{tries}.{k}") for k in "ab")
    with ThreadPoolExecutor(1) as pool:
        true = pool.submit(bench.truth, a, trainer, data, fault, 0.5)
        predict(b, fault, trainer)
        true = true.result()
    now = bench.analyze(a, "--from", b.work + "/profile", "--cached",
                        "%.4f%%" % (100 * true["cached"]))["predicted"]
    off = abs(now["rate"] - true["measured"])
    print(name, true, now)
    # The trainer has read more than it has logged: the samples that it holds.
    assert trainer == "load" or \
        abs(true["counted"] - true["logged"]) <= 96, true
    return off <= max(now["ci"], WIDE * true["measured"])


cells = {"waits": ("sl2", ["--fault", "delay=5ms"]),
         "busy": ("load", ["--fault", f"rate={150 * size:.0f}"])}
assert any(cell(name, *cells[name], n) for n in range(TRIES)), "it is off"
