# SPDX-License-Identifier: MIT
"""
parts.py FILE COPY BYTES SEED STEP: pieces of FILE, each STEPth of them, in
random order; are they as COPY has them?
"""
import os
import random
import sys

path, copy = sys.argv[1:3]
piece, seed, step = map(int, sys.argv[3:])
fd = os.open(path, os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
with open(copy, 'rb') as f:
    right = f.read()
begins = list(range(0, len(right), piece * step))
random.Random(seed).shuffle(begins)
for at in begins:
    got, want = os.pread(fd, piece, at), right[at:at + piece]
    if got != want[:len(got)]:
        sys.exit('wrong bytes at %d' % at)
    if len(got) < len(want):  # what a mount gives that is killed meanwhile
        sys.exit('short read at %d' % at)
