#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount with --analysis counts each part of a large file that is read in
# parts, from its end, in each epoch, whether the part is cached or not.
set -eu
name=analyze-parts
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3

mkdir "$work/shards"
head -c 6M /dev/urandom >"$work/shards/one"
start_mount "$work/shards" "$mnt" --cache "$work/tier:64M" --analysis
scan_through
"$refrain" warm "$mnt" >/dev/null
python3 - "$mnt" "$patience" <<'PY' || fail "see above"
import json, os, socket, sys, time

mnt, patience = sys.argv[1], int(sys.argv[2])
sock = socket.socket(socket.AF_UNIX)
sock.connect(os.getxattr(mnt, "user.refrain.control").decode())
lines = sock.makefile("rw")


def tell(cmd, **more):
    lines.write(json.dumps({"cmd": cmd, **more}) + "\n")
    lines.flush()
    return json.loads(lines.readline())


def wait_for_drop(total):
    until = time.monotonic() + 20 * patience
    while tell("status")["status"]["pages_dropped"] < total:
        assert time.monotonic() < until, "pages stay"
        time.sleep(0.01)


SIZE, PART = 6 << 20, 64 << 10
fd = os.open(mnt + "/one", os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for x in 1, 1, 0, 0:
    assert tell("mask", x=x)["ok"]
    before = tell("rates")["bytes"]
    dropped = tell("status")["status"]["pages_dropped"]
    # Only the end is dropped before the rest is read.
    for at in range(SIZE - PART, -1, -PART):
        assert len(os.pread(fd, PART, at)) == PART
        if at == SIZE - PART:
            wait_for_drop(dropped + PART)
    seen = tell("rates")["bytes"] - before
    # The number is higher if another program drops the caches meanwhile.
    assert SIZE <= seen <= 1.1 * SIZE, (x, seen)
    wait_for_drop(dropped + SIZE)
PY
stop_mount
