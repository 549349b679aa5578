# SPDX-License-Identifier: MIT
"""Kills a daemon in the middle of each phase of a mount.

survive_phases.py REFRAIN SOURCE MOUNT CACHE STATUS_FIELD LOG TIMES SEED:
kills TIMES times in each phase. For each phase it prints how often the
phase was in progress just before the kill. Afterwards every file has its
bytes, open files can be read on, no process is in state D, and nothing is
left after the end of a mount.
"""

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

from holder import daemons

refrain, src, mnt, cache, field, log = sys.argv[1:7]
times, seed = map(int, sys.argv[7:])
rng = random.Random(seed)
patience = float(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))
HANG_S = 10 * patience
APART = ('many',)


def names():
    out = []
    for top, dirs, files in os.walk(src):
        dirs[:] = [d for d in dirs if top != src or d not in APART]
        out += [os.path.relpath(os.path.join(top, f), src) for f in files]
    return sorted(out)


files = names()


def content(top, name):
    with open(os.path.join(top, name), 'rb') as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return f.read()


def value(name):
    return subprocess.run([field, mnt, name], capture_output=True, text=True,
                          timeout=60).stdout.strip()


def state(pid):
    """Return the state of a process; '' if there is no such process."""
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rsplit(')', 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ''


def ended(pid):
    return state(pid) in ('', 'Z', 'X')


def wait_for(what, condition, seconds=2 * HANG_S, pause=0.002):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(pause)


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def mounted():
    with open('/proc/self/mountinfo') as f:
        return any(line.split()[4] == mnt for line in f)


def start(*options, **env):
    """Start a mount. Return its holder."""
    subprocess.run([refrain, 'mount', src, mnt, '--cache', cache + ':1G',
                    '--limit', '128K', '--chunk', '64K', '--staging', '512K',
                    '--log-file', log, *options], check=True, timeout=120,
                   env=dict(os.environ, **env))
    with open('/proc/%d/status' % int(value('pid'))) as f:
        return int(f.read().split('PPid:')[1].split()[0])


def clear():
    subprocess.run([refrain, 'clear', cache], capture_output=True)


def daemon(holder):
    wait_for('no daemon is started', lambda: daemons(holder))
    return daemons(holder)[0]


def finish(holder):
    pid = daemon(holder)
    subprocess.run([refrain, 'umount', mnt], check=True, timeout=60)
    wait_for('the holder outlives the mount', lambda: ended(holder))
    wait_for('the daemon outlives the mount', lambda: ended(pid))
    assert not mounted(), 'the mount is left'


# -- Readers: of any file; each ends when it has an error ---------------------


def read_on(n, beat, stop, errors):
    mine = random.Random(seed * 10 + n)
    try:
        while not stop.is_set():
            beat[n] = time.monotonic()
            name = mine.choice(files)
            assert content(mnt, name) == content(src, name), 'wrong: ' + name
    except BaseException as e:
        errors.put(repr(e))
    beat[n] = float('inf')


@contextlib.contextmanager
def readers(n=3):
    stop, errors = multiprocessing.Event(), multiprocessing.Queue()
    beat = multiprocessing.Array('d', n)
    all_of = [multiprocessing.Process(target=read_on,
                                      args=(i, beat, stop, errors))
              for i in range(n)]
    for r in all_of:
        r.start()
    try:
        yield
        begun = time.monotonic()
        wait_for('a reader hangs', lambda: min(beat) > begun, HANG_S)
    finally:
        stop.set()
        for r in all_of:
            r.join(HANG_S)
            r.kill()
    assert errors.empty(), errors.get()


def all_right():
    for name in files:
        assert content(mnt, name) == content(src, name), 'wrong: ' + name


# -- The phases: each returns whether it was hit ------------------------------


def first_scan():
    clear()
    holder = start('--fault', 'delay=5ms,meta=1')
    with readers():
        time.sleep(rng.random() * 0.1)
        pid = daemon(holder)
        hit = value('scan') != 'complete'
        kill(pid)
        wait_for('not served', lambda: value('scan') == 'complete')
    all_right()
    assert value('recoveries') == '1'
    finish(holder)
    return hit


def refresh():
    holder = start('--fault', 'delay=2ms,meta=1')
    wait_for('no scan', lambda: value('scan') == 'complete')
    name = rng.choice(files)
    with readers():
        # The new file has the same bytes, because the readers compare with the
        # source.
        data = content(src, name)
        with open(os.path.join(src, name + '.new'), 'wb') as f:
            f.write(data)
        os.rename(os.path.join(src, name + '.new'), os.path.join(src, name))
        asking = subprocess.Popen([refrain, 'refresh', mnt],
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.05)
        hit = asking.poll() is None
        kill(daemon(holder))
        asking.wait(timeout=60)
        wait_for('not served', lambda: value('ready') == 'true')
    subprocess.run([refrain, 'refresh', mnt], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)
    all_right()
    finish(holder)
    return hit


def manifest_save():
    clear()
    holder = start()
    new = os.path.join(cache, 'manifest.new')
    with readers():
        pid = daemon(holder)
        until = time.monotonic() + HANG_S
        while not os.path.exists(new) and time.monotonic() < until:
            pass
        if rng.random() < 0.7:
            time.sleep(rng.random() * 0.002)
        hit = os.path.exists(new)
        kill(pid)
        wait_for('not served', lambda: value('scan') == 'complete')
    all_right()
    finish(holder)
    # What is left of it must not disturb the next mount.
    holder = start()
    all_right()
    finish(holder)
    return hit


def admits(pid):
    """Has the daemon a file of the tier open that has no name, or not its
    final name, yet?"""
    try:
        for fd in os.listdir('/proc/%d/fd' % pid):
            to = os.readlink('/proc/%d/fd/%s' % (pid, fd))
            if to.startswith(cache + '/') and (
                    ' (deleted)' in to or '.new' in to or '.tmp' in to):
                return True
    except FileNotFoundError:
        pass
    return False


def admission():
    clear()
    holder = start(REFRAIN_DISABLE=','.join(filter(None, (
        os.environ.get('REFRAIN_DISABLE', ''),
        'tmpfile' if rng.random() < 0.5 else ''))))
    with readers(6):
        pid = daemon(holder)
        until = time.monotonic() + HANG_S / 10
        hit = False
        while not hit and time.monotonic() < until:
            hit = admits(pid)
        kill(pid)
        wait_for('not served', lambda: value('ready') == 'true')
    all_right()
    finish(holder)
    got = subprocess.run([refrain, 'verify', cache], capture_output=True,
                         text=True)
    assert got.returncode == 0, got.stdout + got.stderr
    return hit


def umount():
    """Either the mount is gone, or it continues."""
    holder = start()
    pid = daemon(holder)
    all_right()
    asking = subprocess.Popen([refrain, 'umount', mnt],
                              stderr=subprocess.PIPE, text=True)
    time.sleep(rng.random() * 0.03)
    hit = asking.poll() is None
    kill(pid)
    said = asking.communicate(timeout=60)[1]
    if mounted():
        assert asking.returncode != 0, 'umount says that it is unmounted'
        wait_for('not served', lambda: value('ready') == 'true')
        all_right()
        finish(holder)
    else:
        assert asking.returncode == 0, said
        wait_for('the holder outlives the mount', lambda: ended(holder))
    assert not mounted(), 'a mount is left'
    return hit


def lazy_umount():
    """Detach with a file open: the file can be read until it is closed."""
    holder = start()
    pid = daemon(holder)
    name = max(files, key=lambda f: os.path.getsize(os.path.join(src, f)))
    want = content(src, name)
    fd = os.open(os.path.join(mnt, name), os.O_RDONLY)
    asking = subprocess.Popen([refrain, 'umount', '--lazy', mnt],
                              stderr=subprocess.PIPE, text=True)
    time.sleep(rng.random() * 0.004)
    hit = asking.poll() is None
    kill(pid)
    said = asking.communicate(timeout=60)[1]
    assert asking.returncode == 0, said
    assert not mounted(), 'it is not detached'
    for _ in range(2):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        assert os.pread(fd, len(want), 0) == want, 'wrong bytes'
    os.close(fd)
    wait_for('the holder outlives the mount', lambda: ended(holder))
    return hit


def takeover():
    """Kill the next daemon while it takes over, and the one after it."""
    holder = start()
    with readers():
        n = 0
        # The holder would give up if more daemons ended before one serves.
        for _ in range(4):
            before = daemon(holder)
            kill(before)
            wait_for('no next one', lambda: daemons(holder) not in
                     ([], [before]), pause=0)
            time.sleep(rng.random() * 0.04)
            n += 1
        wait_for('not served', lambda: value('ready') == 'true')
    all_right()
    # A daemon that has taken over has counted that.
    hit = int(value('recoveries')) < n
    finish(holder)
    return hit


def upgrade():
    holder = start()
    with readers():
        asking = subprocess.Popen([refrain, 'upgrade', mnt],
                                  stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.08)
        hit = asking.poll() is None
        kill(daemon(holder))
        asking.wait(timeout=60)
        wait_for('not served', lambda: value('ready') == 'true')
    all_right()
    finish(holder)
    return hit


for phase in (first_scan, refresh, manifest_save, admission, umount,
              lazy_umount, takeover, upgrade):
    hits = 0
    for i in range(times):
        try:
            hits += phase()
        except BaseException as e:
            print('%s, number %d: %r' % (phase.__name__, i, e))
            raise
    print('%s: %d kills, %d of them in it' % (phase.__name__, times, hits),
          flush=True)
    # If there are only a few kills, all may come too early or too late.
    assert hits > 0 or times < 10, 'never in the middle of it'
