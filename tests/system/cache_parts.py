# SPDX-License-Identifier: MIT
"""
cache_parts.py DIR COPY BYTES SEED STEP NAME ...: read every STEPth piece of
BYTES bytes of these files of DIR, in random order, and compare it with COPY.
"""
import os
import random
import sys

top, copy = sys.argv[1:3]
piece, seed, step = map(int, sys.argv[3:6])
files, begins = [], []
for name in sys.argv[6:]:
    fd = os.open(os.path.join(top, name), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    with open(os.path.join(copy, name), 'rb') as f:
        right = f.read()
    begins += [(len(files), at) for at in range(0, len(right), piece * step)]
    files.append((name, fd, right))
random.Random(seed).shuffle(begins)
for i, at in begins:
    name, fd, right = files[i]
    got, want = os.pread(fd, piece, at), right[at:at + piece]
    if got != want[:len(got)]:
        sys.exit('wrong bytes of %s at %d' % (name, at))
    if len(got) < len(want):  # a mount that is killed meanwhile gives less
        sys.exit('short read of %s at %d' % (name, at))
