#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Reads that the kernel answers from the pages that it keeps for a mount with
# --analysis are counted once a sample: of files that are opened twice, of files
# that stay open from one epoch to the next, and of files whose readers drop
# their pages.
set -eu
name=analyze-kept
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-mount-lib.sh
. "$(dirname "$0")/analyze-mount-lib.sh"

ask_mount <<'PY'
import os, time

from analyze_mount import (AGAIN, about, asked, count, epoch, keeps, mnt, names,
                           read)

# The block size makes programs read a file at once, and the kernel reads ahead.
assert os.stat(os.path.join(mnt, "long")).st_blksize == 32768
assert os.stat(os.path.join(mnt, "text")).st_blksize == 4096

# Files with kept pages that are opened twice a sample, files that stay open
# from one epoch to the next, and files whose readers drop their pages, so that
# the daemon gets the read.
asked("mask", x=1)
epoch()
first = asked("rates")["first_reads"]
for n in names:
    read(mnt, n)
    read(mnt, n)
assert not keeps or about(asked("rates")["first_reads"], first + count)
held = {n: open(os.path.join(mnt, n), "rb", buffering=0) for n in names}
first = asked("rates")["first_reads"]
began = time.monotonic()
for f in held.values():
    f.read()
until = began + 1.1
while time.monotonic() < until:
    time.sleep(0.05)
for f in held.values():
    f.seek(0)
    assert f.read()
assert not keeps or about(asked("rates")["first_reads"], first + 2 * count)
for f in held.values():
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    f.close()
r = epoch()
assert about(r["first_reads"], count) and r["kept"] <= AGAIN, r
PY
stop_mount
