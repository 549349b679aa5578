#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount without --analysis has no commands of an analysis.
set -eu
name=analyze-ordinary
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3

printf x >"$src/x"
start_mount "$src" "$mnt" --cache "$work/tier:64M"
python3 - "$mnt" <<'PY' || fail "see above"
import json, os, socket, sys

sock = socket.socket(socket.AF_UNIX)
sock.connect(os.getxattr(sys.argv[1], "user.refrain.control").decode())
lines = sock.makefile("rw")
for cmd in '{"cmd":"mask","x":0}', '{"cmd":"content","content":"tiny"}', \
        '{"cmd":"content","content":"stand-in"}', \
        '{"cmd":"rates"}':
    lines.write(cmd + "\n")
    lines.flush()
    reply = json.loads(lines.readline())
    assert not reply["ok"] and "--analysis" in reply["error"], reply
PY
stop_mount
