#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An analysis that is killed leaves its mount and its directories; the next
# analysis removes them.
set -eu
name=analyze-killed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import os, time

from analyze_run import analyze, end, loader, patience, src, work

killed = analyze(src, "--", *loader("{}"))
until = time.monotonic() + 20 * patience
while not any(os.path.ismount(f"{work}/tmp/{d}")
              for d in os.listdir(work + "/tmp")):
    assert time.monotonic() < until and killed.poll() is None
    time.sleep(0.01)
killed.kill()
killed.communicate()
assert os.listdir(work + "/tmp") and os.listdir(work + "/fast")
status, out, err = end(analyze(src, "--", "true", "{}"))
assert status == 1 and "ended during" in err, err
assert not os.listdir(work + "/tmp") and not os.listdir(work + "/fast")
PY
