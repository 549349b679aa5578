# SPDX-License-Identifier: MIT
"""Trainers for tests of `refrain analyze`: HOW DIRECTORY."""
import mmap, os, sys, threading, time

how, top = sys.argv[1:]
names = [os.path.join(d, f) for d, _, files in os.walk(top) for f in files]
kept = {}


def reads_all(names):
    """Read epoch after epoch, with a little work for each 64 KiB."""
    while True:
        for name in names:
            with open(name, 'rb', buffering=0) as f:
                while f.read(65536):
                    time.sleep(0.05 if how == 'threads' else 0.004)


if how == 'threads':
    for n in range(63):
        threading.Thread(target=reads_all, args=(names[n::64],)).start()
    reads_all(names[63::64])
elif how == 'compiles':
    # First read a list and the first batch.
    for name in names[:8]:
        with open(name, 'rb') as f:
            f.read()
    time.sleep(4)
if how in ('all', 'compiles'):
    reads_all(names)
while True:
    for name in names:
        if name in kept:
            sum(kept[name][::4096])
            continue
        with open(name, 'rb', buffering=0) as f:
            if how == 'maps':
                kept[name] = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
                sum(kept[name][::4096])
            elif how == 'half':
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                f.read(300000)
            else:
                kept[name] = f.read()
