#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Jobs that share batches: each has the stream of a run alone, and each example
# is decoded once for all of them, by a separate host or by the first job. A job
# with other options is refused.
set -eu
name=share-streams
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/share-jobs-lib.sh
. "$(dirname "$0")/share-jobs-lib.sh"

with_jobs 60 0 <<'PY'
import subprocess

from share_jobs import (data, end, options, patience, refrain, refused, same,
                        share, start)

# A separate command is the host: only the host decodes, and each example once.
run = ["--batch", "16", "--epochs", "2", "--echo", "2.5"]
alone = end(start(*run))
host = subprocess.Popen(
    [refrain, "serve", data, "--share", "s", "--share-jobs", "3", *run,
     *options[:4]], stdout=subprocess.PIPE, text=True)
assert "waits" in host.stdout.readline()
refused("seed differs", *run, "--share", "s", "--seed", "6")
refused("batch differs", *run, "--share", "s", "--batch", "32")
refused("'/'", *run, "--share", "a/b")
refused("64", *run, "--share", "x" * 255)
refused("evaluation", "--batch", "16", "--share", "s", "--augment", "eval")
jobs = [start(*run, "--share", "s") for _ in range(3)]
runs = [end(j) for j in jobs]
same("served", runs, alone)
assert [r["decodes"] for r in runs] == [0, 0, 0], runs
assert runs[0]["share"]["host_pid"] == host.pid
assert host.wait(10 * patience) == 0
assert "480 examples decoded" in host.stdout.read()
assert share() == []

# The first job is the host. Jobs with slices of 32 are compared with runs alone
# that have the same stream.
slices = [start("--batch", str(b), "--epochs", "2", "--echo", "2.5", "--share",
                "s", "--share-jobs", "3", "--share-batch", "32")
          for b in (8, 16, 32)]
runs = [end(p) for p in slices]
for b, r in zip((8, 16, 32), runs):
    same(f"slices of {b}", [r], end(start(
        "--batch", str(b), "--epochs", "2", "--echo", "2.5", "--window",
        str(1024 - 32 + b), "--min-lag", str(32 // b))))
assert sum(r["decodes"] for r in runs) == 480, runs
PY
