#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze: the mount covers the source for the command. If its words
# contain {}, the source is not covered, and each {} becomes the mountpoint,
# even if that contains {}.
set -eu
name=analyze-covers
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import os

from analyze_run import analyze, end, src, work

covered = f"grep -q ' {src} .* fuse.refrain ' /proc/self/mountinfo && exit 3"
status, out, err = end(analyze(src, "--", "sh", "-c", covered))
assert status == 1 and "failed with status 3" in err, err
# With {} the source is not covered, and each {} is replaced.
status, out, err = end(analyze(src, "--", "sh", "-c", f"{covered}; exit 4",
                               "{}"))
assert status == 1 and "failed with status 4" in err, err
os.mkdir(work + "/tmp/{}")
status, out, err = end(analyze(
    src, "--", "sh", "-c", 'test -d "$0" && test "$0$0" = "$1" && exit 4',
    "{}", "{}{}", tmp=work + "/tmp/{}"))
os.rmdir(work + "/tmp/{}")
assert status == 1 and "failed with status 4" in err, err
PY
