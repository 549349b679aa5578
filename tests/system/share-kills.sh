#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Hosts of a share and other jobs that are killed at random moments: the others
# have the stream of a run alone. REFRAIN_SEED repeats the moments;
# REFRAIN_KILLS is the number of kills.
set -eu
name=share-kills
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/share-jobs-lib.sh
. "$(dirname "$0")/share-jobs-lib.sh"

kills=${REFRAIN_KILLS:-3}
with_jobs $((60 + kills * 5)) "$kills" <<'PY'
import os, random, signal, time

from share_jobs import (end, kills, same, seed, share, start, view, view_from,
                        wait_for)

print(f"REFRAIN_SEED={seed}")
rnd = random.Random(seed)


def next_batch(host):
    """Is there another host than `host`, and does it have a batch?"""
    v = view()
    return v["begun"] and v["host_pid"] != host and v["slots_held"] > 0


def time_takeover(host, slots):
    """Return the time without a batch after the kill, and the limit for it
    on an idle machine: a second, plus the time that a window and all
    slots take at the rate of a run without a share."""
    begin = time.monotonic()
    wait_for("the next host", lambda: next_batch(host) or not share())
    took = time.monotonic() - begin
    bar = 1 + (1024 + slots * 16) / alone["images_per_s"]
    takeovers.append((took, bar))


def killed(victim, at, step_ms):
    """Run jobs, and kill one of them at step `at` or later. Return the jobs
    and the view at that time; None if the run was over before."""
    jobs = [start(*run, "--step-ms", str(step_ms), "--share", "s",
                  "--share-jobs", "3") for _ in range(3)]
    now = wait_for("a step", lambda: view_from(at) or any(
        j.poll() is not None for j in jobs))
    pid = None
    if now is not True:
        pids = [j["pid"] for j in now["jobs"] if j["pid"] != now["host_pid"]]
        pid = now["host_pid"] if victim == "host" else pids[0]
        os.kill(pid, signal.SIGKILL)
        if victim == "host":
            time_takeover(pid, now["slots"])
    runs = [end(j) for j in jobs if j.pid != pid]
    gone = [j for j in jobs if j.pid == pid]
    [j.communicate() for j in gone]
    over = [j.returncode for j in gone] != [-signal.SIGKILL]
    if victim == "host" and not any(r["share"]["takeovers"] for r in runs):
        over = True
    return None if over else (runs, now)


# Kill a job, and kill the host. On a busy machine a run may be over before the
# kill, and is then repeated with slower steps.
run = ["--batch", "16", "--epochs", "6", "--echo", "2.5"]
alone = end(start(*run))
takeovers = []
for kill in range(kills):
    victim = "job" if kill % 2 else "host"
    at = rnd.randrange(2, 100)
    tries = (killed(victim, at, ms) for ms in (1, 4, 16, 64))
    runs, now = next(filter(None, tries))
    assert len(runs) == 2, now
    same(f"{victim} killed at {now['step']}", runs, alone)
    assert [r["share"]["takeovers"] for r in runs] == \
        [int(victim == "host")] * 2, runs
took, bar = max(takeovers)
print(f"{len(takeovers)} takeovers: the next batch after {took:.3f} s at most, "
      f"bar {bar:.3f} s")
PY
