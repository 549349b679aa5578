# SPDX-License-Identifier: MIT
"""Runs readers of a mount whose daemon is killed again and again.

survive.py REFRAIN MOUNT SOURCE KILLS SEED [OTHER]: with OTHER, another program,
the daemon is upgraded to it and back instead. If KILLS is 0, OTHER is a
file: OTHER.begun is created when all readers have read, and the readers end
when OTHER exists. Meanwhile the caller can do anything to the daemon. Every
reader is a process that compares its bytes with the source. No reader may
see an error, a wrong byte, another inode number or device, or make no
progress for 10 s while a daemon serves. After every second kill, all readers
must make progress before the next kill; otherwise the next daemon would
repeat the question for a request that this daemon has lost. Prints the time
from each kill to the first answer of a daemon after it.

Files below SOURCE/moving are made and replaced here: a reader of an old
version gets its bytes or ESTALE. If the source is a bucket, SURVIVE_STORE
is its URL, and SOURCE is a copy of the bucket. The mount has a fault that
stalls all reads below SOURCE/stalled, if that directory exists: readers
wait for these reads while the daemons die, and get their bytes when the
fault is taken away.
"""

import errno
import mmap
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request

from holder import daemons

refrain, mnt, src = sys.argv[1:4]
kills, seed = int(sys.argv[4]), int(sys.argv[5])
other = sys.argv[6] if len(sys.argv) > 6 else None
HANG_S = 10 * float(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))
BLOCK = 4096
# Names below `many` are listed; the other directories have readers of their
# own.
APART = ('many', 'moving', 'stalled')
OPEN_VERSIONS = 4


def names():
    out = []
    for top, dirs, files in os.walk(src):
        dirs[:] = [d for d in dirs if top != src or d not in APART]
        out += [os.path.relpath(os.path.join(top, f), src) for f in files]
    return sorted(out)


def wanted(name, at=0, size=-1):
    with open(os.path.join(src, name), 'rb') as f:
        f.seek(at)
        return f.read(size)


def drop(fd):
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def same(name, got, at=0):
    want = wanted(name, at, len(got)) if got else b''
    assert got == want, 'wrong bytes of %s at %d' % (name, at)


def whole(rng, name):
    fd = os.open(os.path.join(mnt, name), os.O_RDONLY)
    drop(fd)
    with open(fd, 'rb') as f:
        got = f.read()
    assert got == wanted(name), 'wrong bytes of ' + name


def part(rng, name):
    fd = os.open(os.path.join(mnt, name), os.O_RDONLY)
    drop(fd)
    size = os.fstat(fd).st_size
    for _ in range(4):
        at = rng.randrange(size + 1)
        same(name, os.pread(fd, rng.randrange(1, 70000), at), at)
    os.close(fd)


def mapped(rng, name):
    fd = os.open(os.path.join(mnt, name), os.O_RDONLY)
    if os.fstat(fd).st_size > 0:
        with mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ) as m:
            m.madvise(mmap.MADV_DONTNEED)
            drop(fd)
            assert m[:] == wanted(name), 'wrong bytes of a map of ' + name
    os.close(fd)


def direct(rng, name):
    fd = os.open(os.path.join(mnt, name), os.O_RDONLY | os.O_DIRECT)
    buf = mmap.mmap(-1, 16 * BLOCK)
    at = rng.randrange(os.fstat(fd).st_size // BLOCK + 1) * BLOCK
    n = os.preadv(fd, [buf], at)
    same(name, buf[:n], at)
    os.close(fd)


def look(rng, name):
    fd = os.open(mnt, os.O_RDONLY)
    st = os.stat(os.path.join(mnt, name))
    size = os.stat(os.path.join(src, name)).st_size
    assert st.st_size == size, 'wrong size of ' + name
    assert (st.st_dev, st.st_ino) == inodes[name], 'another inode: ' + name
    assert not os.path.exists(os.path.join(mnt, 'no%d' % rng.randrange(99)))
    os.statvfs(mnt)
    os.close(fd)


def listing(rng, name):
    got = os.listdir(os.path.join(mnt, 'many'))
    assert len(got) == len(many) and set(got) == many, 'a wrong listing'


def kept_open(rng, name):
    fd, name = rng.choice(opened)
    drop(fd)
    at = rng.randrange(os.fstat(fd).st_size + 1)
    same(name, os.pread(fd, 100000, at), at)


def ways(rng, name):
    """Read in all ways that a program has, including io_uring."""
    got = subprocess.run([ways_program, os.path.join(mnt, name),
                          os.path.join(src, name)], capture_output=True,
                         text=True)
    assert got.returncode == 0, name + ': ' + got.stdout + got.stderr


def timed(rng, name):
    """Measure how long single reads take while there is no daemon, or
    another one starts."""
    fd = os.open(os.path.join(mnt, name), os.O_RDONLY | os.O_DIRECT)
    buf = mmap.mmap(-1, BLOCK)
    for _ in range(20):
        at = rng.randrange(os.fstat(fd).st_size // BLOCK + 1) * BLOCK
        begun, before = time.monotonic(), window.value
        n = os.preadv(fd, [buf], at)
        if before % 2 or window.value != before:
            waits.append(time.monotonic() - begun)
        same(name, buf[:n], at)
    os.close(fd)


# -- Files that are replaced --------------------------------------------------


def version_of(name, version):
    """Return the content of a version. Each version has another size, and
    some are larger than an item."""
    line = ('%s version %07d\n' % (name, version)).encode()
    size = (20000 if name.endswith('0') else 200000) + 7 * version
    return (line * (size // len(line) + 1))[:size]


def put(name, version):
    data = version_of(name, version)
    if store:
        urllib.request.urlopen(urllib.request.Request(
            store + '/' + name, data, method='PUT'), timeout=60).close()
        return
    path = os.path.join(src, name)
    with open(path + '.new', 'wb') as f:
        f.write(data)
    os.rename(path + '.new', path)


def refresh(name):
    """Refresh. The daemon that gets the request may die."""
    for _ in range(1000):
        out = subprocess.run([refrain, 'refresh', mnt, name],
                             capture_output=True, text=True, timeout=60)
        if out.returncode == 0:
            return
        time.sleep(0.01)
    raise AssertionError('refresh: ' + out.stderr)


def part_of(fd, rng, want):
    """Read bytes of this version: fewer than the version has if the rest is
    lost."""
    at = rng.randrange(len(want))
    got = os.pread(fd, rng.randrange(1, 70000), at)
    assert got and got == want[at:at + len(got)], 'a mixture of versions'


def old_version(rng, fd, name, version, inode):
    want, st = version_of(name, version), os.fstat(fd)
    old_reads['tried'] += 1
    assert (st.st_size, st.st_ino) == (len(want), inode), 'another file'
    if rng.random() < 0.5:
        drop(fd)
    try:
        part_of(fd, rng, want)
        old_reads['had bytes'] += 1
    except OSError as e:
        assert e.errno == errno.ESTALE, 'an old version: %r' % e


def replaced(rng, _):
    """Replace files. A reader that has an old version open gets its bytes or
    ESTALE; a reader that opens the file after a refresh gets the new
    version."""
    name = rng.choice(sorted(versions))
    version = versions[name]
    fd = os.open(os.path.join(mnt, name), os.O_RDONLY)
    part_of(fd, rng, version_of(name, version))
    olds.append((fd, name, version, os.fstat(fd).st_ino))
    versions[name] = version + 1
    put(name, version + 1)
    old_version(rng, *olds[-1])
    refresh(name)
    with open(os.path.join(mnt, name), 'rb') as f:
        assert f.read() == version_of(name, version + 1), 'not the new version'
        assert os.fstat(f.fileno()).st_ino != olds[-1][3], 'the old inode'
    for old in olds:
        old_version(rng, *old)
    if len(olds) > OPEN_VERSIONS:
        os.close(olds.pop(0)[0])


# -- Reads that the source does not answer ------------------------------------


def stalled(n, done, errors):
    """Read once, so that this process hangs in the kernel or in the page
    cache."""
    name = 'stalled/s%d' % n
    try:
        fd = os.open(os.path.join(mnt, name),
                     os.O_RDONLY | (os.O_DIRECT if n % 2 else 0))
        buf = mmap.mmap(-1, 64 * BLOCK)
        got = os.preadv(fd, [buf], 0)
        assert got and buf[:got] == wanted(name), 'wrong bytes of ' + name
    except BaseException as e:
        errors.put('stalled %d: %r' % (n, e))
    done[n] = time.monotonic()


def start_stalled(errors):
    where = os.path.join(src, 'stalled')
    n = len(os.listdir(where)) if os.path.isdir(where) else 0
    done = multiprocessing.Array('d', n)
    readers = [multiprocessing.Process(target=stalled, args=(i, done, errors))
               for i in range(n)]
    for r in readers:
        r.start()
    return readers, done


def end_stalled(readers, done):
    """Check that the readers have waited all the time, and now get their
    bytes."""
    if any(done):
        return 'a read that the source did not answer has ended'
    if readers:
        out = subprocess.run([refrain, 'fault', mnt, ''], capture_output=True,
                             text=True, timeout=60)
        assert out.returncode == 0, out.stderr
    until = time.monotonic() + HANG_S
    for r in readers:
        r.join(max(0, until - time.monotonic()))
    return None if all(done) else 'a read that stalled hangs'


# -- Kills --------------------------------------------------------------------


def main_reader(job, n, beat, stop, errors, said):
    rng = random.Random(seed * 100 + n)
    try:
        while not stop.is_set():
            beat[n] = time.monotonic()
            job(rng, rng.choice(files))
    except BaseException as e:  # an error of any kind must not happen
        errors.put('%s: %r' % (job.__name__, e))
    beat[n] = float('inf')
    if job is timed:
        said.put(('waits', waits))
    if job is replaced:
        said.put(('versions', (versions, old_reads)))


def parent_of(pid):
    with open('/proc/%d/status' % pid) as f:
        return int(f.read().split('PPid:')[1].split()[0])


def daemon():
    out = subprocess.run([helper, mnt, 'pid'], capture_output=True,
                         text=True, timeout=60).stdout.strip()
    return int(out)


def answered():
    """Return the time until a daemon answers a request that no cache of the
    kernel can answer."""
    begun = time.monotonic()
    os.statvfs(mnt)
    return time.monotonic() - begun


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, 'no daemon after 60 s'
        time.sleep(0.001)


def kill(holder):
    wait_for(lambda: daemons(holder))
    os.kill(daemons(holder)[0], signal.SIGKILL)
    return answered()


def upgrade(n):
    """Upgrade to another program and back."""
    program = refrain if n % 2 else other
    out = subprocess.run([refrain, 'upgrade', mnt, program],
                         capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    return answered()


# -- Readers that stand still -------------------------------------------------


def switches(pid):
    """Returns the number of context switches of a process. It grows whenever
    the process gets the answer for which it has waited in the kernel."""
    with open('/proc/%d/status' % pid) as f:
        return sum(int(line.split()[1]) for line in f if 'ctxt_sw' in line)


def moves(pid):
    """Returns a value that changes whenever the process or one of its children
    makes progress."""
    try:
        with open('/proc/%d/task/%d/children' % (pid, pid)) as f:
            all_of = [pid] + [int(word) for word in f.read().split()]
        return [(p, switches(p)) for p in all_of]
    except (FileNotFoundError, ProcessLookupError):
        return time.monotonic()  # a child has just ended


def where(pid):
    """Returns the kernel functions in which the process waits."""
    try:
        with open('/proc/%d/stack' % pid) as f:
            return ' '.join(line.split()[1] for line in f)
    except OSError as e:
        return str(e)


class Movement:
    """Notes when each reader has last made progress. A reader hangs if it
    waits for a single answer too long; a whole job may take longer."""

    def __init__(self, readers, beat):
        self.readers, self.beat = readers, beat
        self.start()

    def state(self, n):
        if self.beat[n] == float('inf'):
            return time.monotonic()  # the reader has reported its end
        return self.beat[n], moves(self.readers[n].pid)

    def start(self):
        """Begin to measure now, when a daemon has just answered."""
        self.since = time.monotonic()
        self.states = [self.state(n) for n in range(len(self.readers))]
        self.at = [self.since] * len(self.readers)

    def look(self):
        """Returns a message that names the reader that hangs, or None."""
        for n in range(len(self.readers)):
            state, now = self.state(n), time.monotonic()
            if state != self.states[n]:
                self.states[n], self.at[n] = state, now
            elif now - self.at[n] > HANG_S:
                return self.describe(n)
        return None

    def all_moved(self):
        return min(self.at) > self.since

    def describe(self, n):
        lines = ['reader %s hangs' % jobs[n].__name__]
        for pid, _ in self.states[n][1]:
            lines.append('  process %d: %s' % (pid, where(pid)))
        return '\n'.join(lines)

    def settle(self, errors):
        """Wait until all readers have made progress. Returns like look()."""
        self.start()
        while errors.empty() and not self.all_moved():
            hung = self.look()
            if hung:
                return hung
            time.sleep(0.01)
        return None


def rounds(holder, movement, errors):
    rng = random.Random(seed)
    times = []
    # With a store, pauses are longer, because each new daemon lists it again,
    # and little else would be read.
    pauses = (0.005, 0.05, 0.3) + ((1.5,) if store else ())
    hung = None
    for i in range(kills):
        time.sleep(rng.choice(pauses) * rng.random())
        window.value += 1
        times.append(upgrade(i) if other else kill(holder))
        window.value += 1
        if i % 2:
            hung = movement.settle(errors)
        if hung or not errors.empty():
            break
    return times, hung


def watch(movement, errors):
    """Run until the caller says that it is enough."""
    hung = movement.settle(errors)
    open(other + '.begun', 'w').close()
    movement.start()
    while not hung and errors.empty() and not os.path.exists(other):
        if answered() > 0.5:
            movement.start()  # the reader waited for a daemon
        hung = movement.look()
        time.sleep(0.05)
    return [], hung


programs = os.path.join(os.getcwd(), 'tests/system')
# in a container the programs are beside this file
if not os.path.isdir(programs):
    programs = os.path.dirname(os.path.abspath(__file__))
helper = os.path.join(programs, 'status_field')
ways_program = os.path.join(programs, 'read_ways')
files = names()
many = set(os.listdir(os.path.join(src, 'many')))
inodes = {}
for f in files:
    found = os.stat(os.path.join(mnt, f))
    inodes[f] = (found.st_dev, found.st_ino)
opened = [(os.open(os.path.join(mnt, f), os.O_RDONLY), f)
          for f in files[::10]]
jobs = [whole, part, mapped, direct, look, listing, kept_open, ways, timed]
# odd while there is no daemon, or another one starts
window = multiprocessing.Value('q')
# times of the process that measures reads
waits = []
store = os.environ.get('SURVIVE_STORE')
versions, olds = {}, []
old_reads = {'tried': 0, 'had bytes': 0}
if os.path.isdir(os.path.join(src, 'moving')):
    jobs.append(replaced)
    for f in 'moving/m0', 'moving/m1':
        versions[f] = 0
        put(f, 0)
        refresh(f)


def percentile(times, p):
    return 1e3 * times[min(len(times) - 1, int(len(times) * p / 100))]


def report(name, value):
    if name == 'versions':
        now, reads = value
        print('%d versions replaced, %d bytes put; of %d reads of old ones %d '
              'had bytes' % (sum(now.values()),
                             sum(len(version_of(f, v)) for f in now
                                 for v in range(now[f] + 1)),
                             reads['tried'], reads['had bytes']))
    elif value:
        value.sort()
        print('%d reads meanwhile: median %.1f ms, p99 %.0f ms, p99.9 %.0f ms, '
              'most %.0f ms' % (len(value), percentile(value, 50),
                                percentile(value, 99), percentile(value, 99.9),
                                percentile(value, 100)))


def main():
    stop, errors = multiprocessing.Event(), multiprocessing.Queue()
    said = multiprocessing.Queue()
    beat = multiprocessing.Array('d', len(jobs))
    readers = []
    stalling, done = start_stalled(errors)
    for n, job in enumerate(jobs):
        beat[n] = time.monotonic()
        readers.append(multiprocessing.Process(
            target=main_reader, args=(job, n, beat, stop, errors, said)))
        readers[-1].start()
    movement = Movement(readers, beat)
    times, hung = rounds(parent_of(daemon()), movement, errors) if kills \
        else watch(movement, errors)
    hung = hung or movement.settle(errors)
    stuck = end_stalled(stalling, done)  # nothing else ends these reads
    hung = hung or stuck
    stop.set()
    for job in jobs:
        if job in (timed, replaced) and not hung:
            report(*said.get(timeout=6 * HANG_S))
    for r in readers + stalling:
        r.join(HANG_S)
        if r.is_alive():
            hung = hung or 'a reader does not end'
            r.kill()
    bad = 0
    while not errors.empty():
        print(errors.get())
        bad += 1
    times.sort()
    if times:
        print('%d times; first answer after: median %.0f ms, p95 %.0f ms, '
              'most %.0f ms' % (len(times), 1e3 * times[len(times) // 2],
                                1e3 * times[len(times) * 95 // 100],
                                1e3 * times[-1]))
    if hung:
        print(hung)
    sys.exit(1 if bad or hung else 0)


main()
