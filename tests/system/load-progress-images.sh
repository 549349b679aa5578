#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The progress of `refrain load` on a terminal shows images and their rate.
set -eu
name=load-progress-images
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3
# shellcheck source=tests/system/load-messages-lib.sh
. "$(dirname "$0")/load-messages-lib.sh"

python3 - "$refrain" "$data" <<'END' || fail 'no images in the progress'
import os, pty, re, sys

seen = b""
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "load", sys.argv[2], "--batch", "8",
        "--size", "32", "--step-ms", "20", "--steps", "40", "--epochs", "9"])
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
os.waitpid(pid, 0)
sys.exit(not re.search(rb", \d+ images, \d+/s", seen))
END
