#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze with processes in sessions of their own, as the workers of
# torchrun are: all are counted and ended, except those from before the command.
set -eu
name=analyze-sessions
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import os, signal, time

from analyze_run import brief, patience, profile_of, src, trainer, work

# One process reads, and one would never end. The shell waits for the first.
python, script = trainer("all")[:2]
away = brief(src, "sh", "-c", "setsid sh -c 'echo $$ >$3; exec sleep 600' "
             "x x x $3 & setsid -w $0 $1 all $2", python, script, "{}",
             work + "/away", options=["--no-tiny"],
             # This process was started before the command, and must not be
             # ended.
             shell=["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $! >$0; "
                    'exec "$@"', work + "/mine"])
assert profile_of(away)["cpus_used"] > 0
with open(work + "/away") as f:
    left = "/proc/" + f.read().strip()
until = time.monotonic() + 10 * patience    # the process must be reaped, too
while os.path.exists(left):
    assert time.monotonic() < until, "it was left"
    time.sleep(0.01)
with open(work + "/mine") as f:
    # this raises an error if the process has ended
    os.kill(int(f.read()), signal.SIGTERM)
PY
