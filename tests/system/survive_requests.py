# SPDX-License-Identifier: MIT
"""Flips bits of the record of requests between two daemons of a mount.

survive_requests.py REFRAIN SOURCE MOUNTPOINT WORK STATUS_FIELD FLIPS SEED
"""

import contextlib
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

from holder import daemons

refrain, src, mnt, work, field = sys.argv[1:6]
flips, seed = int(sys.argv[6]), int(sys.argv[7])
rng = random.Random(seed)
PATIENCE_S = 60 * float(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))
SLOTS, SLOT_BYTES = 8191, 512
READ = 15
# offsets in struct fuse_in_header and struct fuse_read_in, which follows it
LEN, UNIQUE, NODE, OFFSET = 0, 8, 16, 48
READERS = 4
READ_BYTES = 4096
log = os.path.join(work, 'log')
whole = open(os.path.join(src, 'stalled'), 'rb').read()


def value(name):
    return subprocess.run([field, mnt, name], capture_output=True, text=True,
                          timeout=PATIENCE_S).stdout.strip()


def wait_for(what, condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.005)


class Reader(threading.Thread):
    """Reads a range for which the source does not answer."""

    def __init__(self, at):
        super().__init__(daemon=True)
        self.at, self.error = at, None
        self.fd = os.open(os.path.join(mnt, 'stalled'), os.O_RDONLY)
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_RANDOM)
        self.start()

    def run(self):
        try:
            got = os.pread(self.fd, READ_BYTES, self.at)
            self.right = got == whole[self.at:self.at + READ_BYTES]
        except OSError as e:
            self.error = e
        os.close(self.fd)


def record_of(holder):
    fds = '/proc/%d/fd' % holder
    for fd in os.listdir(fds):
        path = os.path.join(fds, fd)
        if 'memfd:refrain-requests' in os.readlink(path):
            at = os.open(path, os.O_RDWR)
            shared = mmap.mmap(at, (SLOTS + 1) * SLOT_BYTES)
            os.close(at)
            return shared
    raise AssertionError('the holder keeps no record of requests')


def reads_in(record):
    found = []
    for slot in range(SLOTS):
        _, opcode, unique = struct.unpack_from('IIQ', record,
                                               slot * SLOT_BYTES)
        if unique != 0 and opcode == READ:
            found.append(slot * SLOT_BYTES)
    return found


def case(damage):
    """Let damage() change the record, and let a daemon take over or refuse
    that. Return the readers."""
    # Remove the cache, because cached items are not requested.
    shutil.rmtree(work + '/c', ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    mount = [refrain, 'mount', '--foreground', src, mnt, '--cache',
             work + '/c:10M', '--chunk', '64K', '--limit', '64K', '--log-file',
             log, '--fault', 'stall=1,match=stalled']
    holder = subprocess.Popen([refrain, 'hold', '--'] + mount,
                              stderr=open(work + '/hold.err', 'w'))
    wait_for('no mount', lambda: value('ready') == 'true')
    readers = [Reader(i * 400000) for i in range(READERS)]
    wait_for('no reads', lambda: int(value('parked') or 0) >= READERS)
    record = record_of(holder.pid)
    os.kill(holder.pid, signal.SIGSTOP)
    pid = daemons(holder.pid)[0]
    os.kill(pid, signal.SIGKILL)
    wait_for('the daemon does not die', lambda: ' Z ' in
             open('/proc/%d/stat' % pid).read())
    slots = reads_in(record)
    assert len(slots) >= READERS, slots
    damage(record, slots)
    os.kill(holder.pid, signal.SIGCONT)
    wait_for('nobody serves', lambda: value('ready') == 'true')
    subprocess.run([refrain, 'fault', mnt, ''], check=True)
    for r in readers:
        r.join(PATIENCE_S)
        assert not r.is_alive(), 'a reader hangs'
    subprocess.run([refrain, 'umount', mnt], check=True)
    assert holder.wait(PATIENCE_S) == 0
    return readers


def flip(at, bit):
    def damage(record, slots):
        record[slots[1] + at + bit // 8] ^= 1 << bit % 8
    return damage


def flip_anywhere(record, slots):
    length = struct.unpack_from('I', record, slots[0])[0]
    flip(0, rng.randrange(8 * length))(record, slots)


def flip_free(record, slots):
    """Make a free slot look as if it was in use."""
    for slot in range(SLOTS):
        at = slot * SLOT_BYTES
        length, _, unique = struct.unpack_from('IIQ', record, at)
        if unique == 0 and length > 0:
            record[at + UNIQUE] ^= 4
            return
    raise AssertionError('all slots are in use, or were not')


def refused(what, damage):
    readers = case(damage)
    for r in readers:
        assert r.error is not None or r.right, what + ': wrong bytes'
    errors = sum(r.error is not None for r in readers)
    assert errors == READERS, what + ': the record is used'
    assert 'its record of requests is damaged' in open(log).read(), what


for r in case(lambda record, slots: None):
    assert r.error is None and r.right, r.error
cases = {'offset': flip(OFFSET, 18), 'node': flip(NODE, 1),
         'length': flip(LEN, 4), 'a free slot': flip_free}
for name, damage in cases.items():
    refused(name, damage)
for n in range(flips):
    refused('flip %d' % n, flip_anywhere)
print('%d records with a flipped bit were refused' % (len(cases) + flips))
