# SPDX-License-Identifier: MIT
"""damage.py SEED COUNT KINDS SECONDS TIER ...: damages that many entries of the
tiers, chosen blindly, one after another; KINDS is a list of flip, trailer, cut,
extend, zero, empty, swap, delete. Prints how many are damaged, and how many
went.
"""
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
rng.shuffle(entries)


def content_bytes(path):
    return int(path.rsplit('-', 1)[1])


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


bad = gone = 0
while bad + gone < count:
    kind = rng.choice(kinds)
    if kind == 'swap' and bad + gone + 1 < count:
        a, b = entries.pop(), entries.pop()
        os.rename(a, a + '.tmp')
        os.rename(b, a)
        os.rename(a + '.tmp', b)
        bad += 2
        continue
    if kind == 'swap':  # one is left: give it another's bytes
        a, b = entries.pop(), entries[0]
        with open(b, 'rb') as f, open(a + '.tmp', 'wb') as g:
            g.write(f.read())
        os.rename(a + '.tmp', a)
        bad += 1
        continue
    path = entries.pop()
    if kind == 'delete':
        os.unlink(path)
        gone += 1
        continue
    {'flip': flip, 'trailer': trailer, 'cut': cut, 'extend': extend,
     'zero': zero, 'empty': empty}[kind](path)
    bad += 1
    time.sleep(pause_s)
print(bad, gone)
