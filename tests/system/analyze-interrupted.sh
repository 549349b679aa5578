#!/bin/sh
# SPDX-License-Identifier: MIT
#
# SIGINT ends refrain analyze with its command and its mount, even if another
# mount namespace has a copy of the mount.
set -eu
name=analyze-interrupted
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import os, signal, subprocess, time

from analyze_run import analyze, children, end, loader, patience, src

stopped = analyze(src, "--", *loader("{}"))


def copies(pid):
    """Return the mounts of analyses in the namespace of a process."""
    try:
        with open(f"/proc/{pid}/mountinfo") as f:
            return f.read().count("/refrain-analyze.")
    except OSError:
        return 0


def reads():
    """Return the loader of the interrupted analysis once it has begun to
    read."""
    for pid in children(stopped):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().split(b"\0")[1:2] == [b"load"]:
                    return int(pid)
        except OSError:
            pass
    return 0


until = time.monotonic() + 20 * patience
while not (pid := reads()):
    assert time.monotonic() < until and stopped.poll() is None
    time.sleep(0.01)
# Another mount namespace gets copies of the mounts, and keeps them.
other = subprocess.Popen(["unshare", "-m", "sh", "-c", "echo; exec sleep 600"],
                         stdout=subprocess.PIPE)
may = other.stdout.readline()
assert not may or copies(other.pid), "no copies"
stopped.send_signal(signal.SIGINT)
status, out, err = end(stopped)
assert status == 1 and "interrupted" in err and not out, err
assert not os.path.exists(f"/proc/{pid}"), "the command goes on"

other.kill()
PY
