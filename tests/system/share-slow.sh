#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A job of a share that is stopped is named; with solo the others do not wait
# for it for long, and it still gets its stream.
set -eu
name=share-slow
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/share-jobs-lib.sh
. "$(dirname "$0")/share-jobs-lib.sh"

with_jobs 60 0 <<'PY'
import os, signal

from share_jobs import (end, patience, same, start, stop, view, view_from,
                        wait_for)

run = ["--batch", "16", "--epochs", "6", "--echo", "2.5"]
alone = end(start(*run))

# A job that is stopped is named.
run += ["--step-ms", "20", "--share", "s", "--share-jobs", "2"]
slow = start(*run)
fast = start(*run, "--timeout", "1")
wait_for("a step", lambda: view_from(2))
stop(slow.pid)
out, err = fast.communicate(timeout=30 * patience)
assert fast.returncode == 1 and f"process {slow.pid}, stopped" in err, err
os.kill(slow.pid, signal.SIGKILL)
slow.communicate()

# With solo the others do not wait for it for long, and it still gets its
# stream.
run = ["--batch", "16", "--epochs", "6", "--echo", "2.5", "--share", "s",
       "--share-jobs", "3"]
host = start(*run, "--step-ms", "10")
wait_for("a host", lambda: view()["jobs"])
slow = start(*run, "--share-slow", "solo", "--share-grace-s", "1")
other = start(*run, "--step-ms", "10")
wait_for("a step", lambda: view_from(5))
stop(slow.pid)
wait_for("it is parted", lambda: any(j["solo"] for j in view()["jobs"]))
os.kill(slow.pid, signal.SIGCONT)
runs = [end(p) for p in (slow, host, other)]
same("solo", runs, alone)
assert [r["share"]["parted"] > 0 for r in runs] == [True, False, False], runs
PY
