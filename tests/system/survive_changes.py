# SPDX-License-Identifier: MIT
"""survive_changes.py REFRAIN SOURCE MOUNT HOLDER KILLS: replaces all files of
a directory, asks for a refresh, and kills the daemon as soon as the record
of its changes is ahead of the notifications to the kernel; see
doc/formats.md. After the next refresh each name must have the new file.
"""

import mmap
import os
import signal
import struct
import subprocess
import sys
import time

from holder import daemons

refrain, src, mnt = sys.argv[1:4]
holder, kills = map(int, sys.argv[4:])
FILES = 150
END_AT, TOLD_AT = 48, 56        # offsets in the head of the record of changes
patience = float(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))


def path(top, i):
    return os.path.join(top, 'd', 'f%03d' % i)


def content(version, i):
    return b'version %d of %d' % (version, i) + b'.' * version


def replace_all(version):
    for i in range(FILES):
        with open(path(src, i) + '.new', 'wb') as f:
            f.write(content(version, i))
        os.rename(path(src, i) + '.new', path(src, i))


def check_all(version):
    for i in range(FILES):
        with open(path(mnt, i), 'rb') as f:
            got = f.read()
        assert got == content(version, i), '%s is %r' % (path(mnt, i), got)


def refresh():
    """Refresh. The daemon may be about to be replaced."""
    until = time.monotonic() + 30 * patience
    while True:
        out = subprocess.run([refrain, 'refresh', mnt], text=True,
                             capture_output=True, timeout=60 * patience)
        if out.returncode == 0:
            return
        assert time.monotonic() < until, out.stderr


def trail():
    fds = '/proc/%d/fd' % holder
    for fd in os.listdir(fds):
        if 'memfd:refrain-names' in os.readlink(os.path.join(fds, fd)):
            at = os.open(os.path.join(fds, fd), os.O_RDONLY)
            return mmap.mmap(at, mmap.PAGESIZE, prot=mmap.PROT_READ)
    raise AssertionError('the holder does not keep a trail')


def killed_between(shared):
    """Kill the daemon. Return False if it had notified the kernel before
    this program noticed the change."""
    pid = daemons(holder)[0]
    asking = subprocess.Popen([refrain, 'refresh', mnt],
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    before = struct.unpack_from('Q', shared, END_AT)[0]
    hit = False
    while not hit and asking.poll() is None:
        for _ in range(1000):
            end, told = struct.unpack_from('QQ', shared, END_AT)
            if end > before and told < end:
                os.kill(pid, signal.SIGKILL)
                hit = True
                break
    asking.wait(timeout=60 * patience)
    return hit


replace_all(1)
refresh()
check_all(1)                    # the kernel has all names
ring, hits, now = trail(), 0, 1
for _ in range(10 * kills):
    now += 1
    replace_all(now)
    hits += killed_between(ring)
    refresh()
    check_all(now)
    if hits == kills:
        break
print('%d of %d kills before the kernel was told' % (hits, now - 1))
