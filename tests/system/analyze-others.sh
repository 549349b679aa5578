#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze does not unmount a mount that looks like one of a killed
# analysis of another user, even if the daemon of that mount is silent.
set -eu
name=analyze-others
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import ctypes, os, subprocess

from analyze_run import analyze, end, src, work

ended = subprocess.Popen(["true"])
ended.wait()
others = f"{work}/tmp/refrain-analyze.{ended.pid}.others"
os.mkdir(others)
fuse = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
rc = libc.mount(b"others", others.encode(), b"fuse.refrain", 0,
                b"fd=%d,rootmode=40000,user_id=12345,group_id=12345,"
                b"allow_other" % fuse)
root = os.geteuid() == 0   # other users cannot make such a mount
assert rc == 0 or not root, os.strerror(ctypes.get_errno())
status, out, err = end(analyze(src, "--", "true", "{}"))
assert status == 1 and "ended during" in err, err
assert rc or libc.umount2(others.encode(), 2) == 0, "it was unmounted"
os.close(fuse)
if os.path.isdir(others):
    os.rmdir(others)
PY
