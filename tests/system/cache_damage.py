# SPDX-License-Identifier: MIT
"""cache_damage.py SEED COUNT KINDS SECONDS TIER ...: do COUNT operations, one
after the other, on random entries of the tiers, and none twice. KINDS is a
list of flip, trailer, cut, extend, zero, empty, swap, delete. Prints the
numbers of damaged entries (a swap damages two) and of deleted entries.
"""
import ctypes
import os
import random
import sys
import time

rng = random.Random(int(sys.argv[1]))
count = int(sys.argv[2])
kinds = sys.argv[3].split(',')
pause_s = float(sys.argv[4])
entries = sorted(os.path.join(top, name)
                 for tier in sys.argv[5:]
                 for top, _, names in os.walk(tier)
                 for name in names
                 if len(os.path.basename(top)) == 2 and '-' in name)
libc = ctypes.CDLL(None, use_errno=True)


def content_bytes(path):
    return int(path.rsplit('-', 1)[1])


# Names differ from run to run, but sizes do not, so a seed always selects the
# same entries.
entries.sort(key=content_bytes)
rng.shuffle(entries)


def flip_at(path, at):
    with open(path, 'r+b') as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1 << rng.randrange(8)]))


def flip(path):
    flip_at(path, rng.randrange(content_bytes(path)))


def trailer(path):
    flip_at(path, rng.randrange(content_bytes(path), os.stat(path).st_size))


def cut(path):
    os.truncate(path, rng.randrange(1, os.stat(path).st_size))


def empty(path):
    os.truncate(path, 0)


def extend(path):
    with open(path, 'ab') as f:
        f.write(rng.randbytes(rng.choice([1, 48, 4096])))


def zero(path):
    size = os.stat(path).st_size
    start = rng.randrange(max(1, size - 48))
    with open(path, 'r+b') as f:
        f.seek(start)
        f.write(bytes(min(size - start, 4096)))
        f.seek(size - 1)
        f.write(b'\0\0')


def swap(a, b):
    """Exchange both files at once, because the mount would count a name that is
    missing for a moment."""
    at_fdcwd, exchange = -100, 2
    if libc.renameat2(at_fdcwd, os.fsencode(a), at_fdcwd, os.fsencode(b),
                      exchange) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), a)


bad = gone = 0
for _ in range(count):
    kind = rng.choice(kinds)
    path = entries.pop()
    if kind == 'swap':
        swap(path, entries.pop())
        bad += 2
    elif kind == 'delete':
        os.unlink(path)
        gone += 1
    else:
        {'flip': flip, 'trailer': trailer, 'cut': cut, 'extend': extend,
         'zero': zero, 'empty': empty}[kind](path)
        bad += 1
    time.sleep(pause_s)
print(bad, gone)
