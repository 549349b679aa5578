# SPDX-License-Identifier: MIT
"""Damages state before a daemon continues with it.

survive_states.py REFRAIN SOURCE MOUNT CACHE STATUS_FIELD LOG TIMES SEED:
TIMES times, flips a bit or tears a part of the state that the holder keeps,
and kills the daemon. Open files must then give their bytes or an error in
time; no reader stays in state D; and later reads are right. If the next
daemon has not continued with the mount, the log says why.
"""

import collections
import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

refrain, src, mnt, cache, field, log = sys.argv[1:7]
times, seed = map(int, sys.argv[7:])
rng = random.Random(seed)
patience = float(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))
RECOVER_S = 10
HANG_S = 10 * patience
REFUSED = 'cannot go on with the mount'

names = [os.path.join(d, f)[len(src) + 1:]
         for d, _, fs in os.walk(src) for f in fs if '/many' not in d]


def content(name):
    with open(os.path.join(src, name), 'rb') as f:
        return f.read()


def value(name):
    return subprocess.run([field, mnt, name], capture_output=True, text=True,
                          timeout=60).stdout.strip()


def parent(pid):
    with open('/proc/%d/status' % pid) as f:
        return int(f.read().split('PPid:')[1].split()[0])


def state(pid):
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rsplit(')', 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ''


def last_used(fd):
    """Return the offset after the last byte that is not 0, near which a
    record may have been torn."""
    size = os.fstat(fd).st_size
    data = os.pread(fd, min(size, 1 << 22), 0).rstrip(b'\\0')
    return max(1, len(data))


def damage(holder):
    fds = '/proc/%d/fd' % holder
    kept = [os.path.join(fds, fd) for fd in os.listdir(fds)
            if 'memfd:refrain-' in os.readlink(os.path.join(fds, fd))]
    path = rng.choice(kept)
    fd = os.open(path, os.O_RDWR)
    end = last_used(fd)
    at = rng.randrange(end) if rng.random() < 0.5 else \
        rng.randrange(min(end, 1024))
    kind = rng.choice(('flipped', 'torn', 'torn at the end'))
    if kind == 'flipped':
        old = os.pread(fd, 1, at)
        new = bytes([old[0] ^ 1 << rng.randrange(8)])
    else:
        size = rng.choice((8, 64, 512))
        at = max(0, end - size) if kind == 'torn at the end' else at
        old = os.pread(fd, size, at)
        new = bytes(len(old))
    os.pwrite(fd, new, at)
    os.close(fd)
    return kind, os.readlink(path).split('refrain-')[1].split()[0]


def read_on(opened, direct, said):
    """Read on in a process of its own, which may get into state D."""
    try:
        for name, fd in opened.items():
            want = content(name)
            if direct:
                fd = os.open('/proc/self/fd/%d' % fd,
                             os.O_RDONLY | os.O_DIRECT)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            if os.pread(fd, len(want) + 1, 0) != want:
                said.put('wrong bytes of ' + name)
    except OSError:
        pass                    # the connection has ended


def one():
    scanning = rng.random() < 0.3
    # wait, so that not all names are in the manifest
    if scanning:
        subprocess.run([refrain, 'clear', cache], capture_output=True)
    open(log, 'w').close()
    subprocess.run([refrain, 'mount', src, mnt, '--cache', cache + ':1G',
                    '--recover-timeout', str(RECOVER_S), '--log-file', log]
                   + (['--fault', 'delay=3ms,meta=1'] if scanning else []),
                   check=True, timeout=120)
    pid = int(value('pid'))
    holder = parent(pid)
    opened = {n: os.open(os.path.join(mnt, n), os.O_RDONLY)
              for n in rng.sample(names, 5)}
    if rng.random() < 0.2:
        os.kill(pid, signal.SIGSTOP)
    what = damage(holder)
    os.kill(pid, signal.SIGKILL)
    begun = time.monotonic()
    said = multiprocessing.Queue()
    readers = [multiprocessing.Process(target=read_on, args=(opened, d, said))
               for d in (False, True)]
    for r in readers:
        r.start()
    for r in readers:
        r.join(RECOVER_S + HANG_S - (time.monotonic() - begun))
        assert not r.is_alive(), '%s: a reader is in state %s' % (
            what, state(r.pid))
    took = time.monotonic() - begun
    assert said.empty(), '%s: %s' % (what, said.get())
    for fd in opened.values():
        with contextlib.suppress(OSError):
            os.close(fd)        # ENOTCONN if the connection has ended
    until = time.monotonic() + 60
    while value('ready') != 'true':
        assert time.monotonic() < until, '%s: no mount' % (what,)
        time.sleep(0.02)
    for n in rng.sample(names, 5):
        with open(os.path.join(mnt, n), 'rb') as f:
            assert f.read() == content(n), '%s: wrong after it: %s' % (what, n)
    went_on = value('recoveries') == '1'
    with open(log) as f:
        text = f.read()
    assert went_on != (REFUSED in text), '%s: the log: %s' % (what, text)
    holder = parent(int(value('pid')))
    subprocess.run([refrain, 'umount', mnt], check=True, timeout=60)
    return what, went_on, took


seen = collections.Counter()
longest = 0
for i in range(times):
    how, on, seconds = one()
    seen[(*how, 'gone on with' if on else 'refused')] += 1
    longest = max(longest, seconds)
for key, n in sorted(seen.items()):
    print('%s, %s: %d %s' % (key[1], key[0], n, key[2]))
print('%d damages; readers waited for %.2f s at most' % (times, longest))
