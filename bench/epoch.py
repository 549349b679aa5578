#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The runs of bench/epoch.sh, which makes the slow disk and says what to run.

Each run has a control group of its own with the same memory for every
contender: trainer, daemons, caches and all pages of files are in it. The
trainer is `refrain load` with steps of a fixed time; its log says when each
batch was there. What came from the disk is what the control group of the
throttle has counted, and for refrain also what the mount has.

Prints a table and writes a JSON object with all that was measured.
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from epoch_shapes import SHAPES

IMAGE = 32              # side of the images that the trainer gets
LIMIT = 4 << 20
# Pages that the kernel may keep of files outside the cache; they hide reads.
PAGES = 1 << 20
# Memory of a control group besides cache, trainer and staging: for the daemon
# and the kernel.
BESIDE = 56 << 20
BLOCK = 4096
TRAILER_MAX = 512       # of an entry with few blocks


def pad(top, size):
    """Every file becomes `size` bytes long; decoders stop before."""
    rng = random.Random(1)
    for folder, _, names in os.walk(top):
        for name in names:
            with open(os.path.join(folder, name), 'ab') as f:
                f.write(rng.randbytes(size - f.tell()))


def trainer_rate(data):
    """Bytes a second that a trainer takes which never waits."""
    return data['bytes'] / data['files'] * data['batch'] / (
        data['step_ms'] / 1000)


def put(path, text):
    with open(path, 'w') as f:
        f.write(str(text))


def fields(path):
    with open(path) as f:
        return [line.split() for line in f]


# -- Control groups ----------------------------------------------------------

class Group:
    """Throttled reads of one device, and bounded memory."""

    def __init__(self, a, number, rate, memory):
        self.unified = not os.path.exists(
            os.path.join(a.group, 'blkio.throttle.read_bps_device'))
        st = os.stat(a.loop)
        self.device = '%d:%d' % (os.major(st.st_rdev), os.minor(st.st_rdev))
        self.paths = []
        name = 'refrain-epoch-%s-%d' % (a.id, number)
        if self.unified:
            self.io = os.path.join(os.path.dirname(a.group), name)
            os.mkdir(self.io)
            self.paths = [self.io]
            put(os.path.join(self.io, 'memory.max'), memory)
        else:
            self.io = a.group
            top = next(f[1] for f in fields('/proc/mounts')
                       if f[2] == 'cgroup' and 'memory' in f[3].split(','))
            self.memory = os.path.join(top, name)
            os.mkdir(self.memory)
            put(os.path.join(self.memory, 'memory.limit_in_bytes'), memory)
            self.paths = [self.io, self.memory]
        self.throttle(rate)

    def throttle(self, rate):
        if self.unified:
            put(os.path.join(self.io, 'io.max'),
                '%s rbps=%s' % (self.device, rate or 'max'))
        else:
            put(os.path.join(self.io, 'blkio.throttle.read_bps_device'),
                '%s %d' % (self.device, rate))

    def enter(self):
        for path in self.paths:
            put(os.path.join(path, 'cgroup.procs'), os.getpid())

    def start(self, args, **more):
        return subprocess.Popen(args, preexec_fn=self.enter, **more)

    def read_bytes(self):
        """Of the device, by everybody in the group."""
        if self.unified:
            for line in fields(os.path.join(self.io, 'io.stat')):
                if line and line[0] == self.device:
                    return int(dict(f.split('=') for f in line[1:])['rbytes'])
            return 0
        for line in fields(os.path.join(
                self.io, 'blkio.throttle.io_service_bytes')):
            if line[0] == self.device and line[1] == 'Read':
                return int(line[2])
        return 0

    def memory_peak(self):
        name = 'memory.peak' if self.unified else 'memory.max_usage_in_bytes'
        try:
            with open(os.path.join(self.paths[-1], name)) as f:
                return int(f.read())
        except OSError:
            return 0

    def page_cache(self):
        with open(os.path.join(self.paths[-1], 'memory.stat')) as f:
            stat = dict(line.split() for line in f)
        return int(stat.get('total_cache', stat.get('file', 0)))

    def remove(self):
        for _ in range(100):
            try:
                os.rmdir(self.paths[-1])
                return
            except OSError:
                time.sleep(0.05)


# -- Mounts ------------------------------------------------------------------

def wait_until(what, seconds, condition):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            sys.exit('epoch: %s' % what)
        time.sleep(0.02)


class Refrain:
    def __init__(self, a, group, cache_bytes):
        self.a = a
        self.tier = os.path.join(a.work, 'tier')
        self.mnt = os.path.join(a.work, 'mnt')
        self.process = group.start(
            [a.refrain, 'mount', '--foreground', a.slow, self.mnt, '--cache',
             '%s:%d' % (self.tier, cache_bytes), '--limit', str(LIMIT),
             '--staging', '%dM' % a.shape.staging_mib, '--pages',
             str(PAGES)])
        wait_until('the mount does not come', 20, self._ready)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self._place())
        self.lines = self.socket.makefile('rwb')
        self.lock = threading.Lock()

    def _place(self):
        return os.getxattr(self.mnt, 'user.refrain.control')

    def _ready(self):
        if self.process.poll() is not None:
            sys.exit('epoch: the mount ended')
        try:
            self._place()
        except OSError:
            return False
        out = subprocess.run([self.a.refrain, 'status', self.mnt, '--json'],
                             stdout=subprocess.PIPE, check=True).stdout
        status = json.loads(out)
        return status['ready'] and status['scan'] == 'complete'

    def ask(self, **request):
        with self.lock:
            self.lines.write(json.dumps(request).encode() + b'\n')
            self.lines.flush()
            while True:
                answer = json.loads(self.lines.readline())
                if not answer.get('progress'):
                    return answer

    def status(self):
        return self.ask(cmd='status')['status']

    def warm(self):
        self.ask(cmd='warm')

    def end(self):
        self.socket.close()
        subprocess.run([self.a.refrain, 'umount', self.mnt], check=False)
        self.process.wait()
        shutil.rmtree(self.tier, ignore_errors=True)


class Rclone:
    def __init__(self, a, group, cache_bytes):
        self.mnt = os.path.join(a.work, 'mnt')
        # rclone checks the size of its cache once a second, which is too late
        # for memory. So its cache is on a disk that is not throttled.
        self.cache = os.path.join(a.disk, 'rclone')
        self.process = group.start(
            ['rclone', 'mount', a.slow, self.mnt, '--read-only',
             '--config', '/dev/null', '--cache-dir', self.cache,
             '--vfs-cache-mode', 'full', '--vfs-cache-max-size',
             '%dB' % cache_bytes, '--vfs-cache-poll-interval', '1s',
             '--buffer-size', '256K', '--dir-cache-time', '1h',
             '--attr-timeout', '1h', '--log-level', 'ERROR'],
            stderr=subprocess.DEVNULL)
        wait_until('rclone does not mount', 20,
                   lambda: os.path.ismount(self.mnt))

    def end(self):
        subprocess.run(['fusermount3', '-uz', self.mnt], check=False)
        self.process.wait()
        shutil.rmtree(self.cache, ignore_errors=True)


def read_all(group, top):
    """As a first epoch would, by a process of the group."""
    group.start(['sh', '-c', 'find "$1" -type f -exec cat {} + >/dev/null',
                 'sh', top]).wait()


# Options of the mount and of the trainer. Without a mount, the trainer reads
# the bare directory.
CONTENDERS = {
    'page-cache': {'mount': None},
    'rclone': {'mount': Rclone},
    'no-plan': {'mount': Refrain, 'load': ['--no-mount-help']},
    'plan': {'mount': Refrain},
    'plan-2': {'mount': Refrain, 'load': ['--echo', '2']},
    'plan-4': {'mount': Refrain, 'load': ['--echo', '4']},
    'plan-auto': {'mount': Refrain, 'load': ['--echo', 'auto']},
}


# -- One run -----------------------------------------------------------------

class Watch:
    """What was read from the disk, over time."""

    def __init__(self, group):
        self.group = group
        self.seen = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ended.wait(0.05):
            self.seen.append((time.monotonic(), self.group.read_bytes()))

    def end(self, before):
        self.ended.set()
        self.thread.join()
        self.seen = [(when, n - before) for when, n in self.seen]

    def at(self, when):
        """Bytes by a moment, between two looks."""
        before = (0, 0)
        for now in self.seen:
            if now[0] >= when:
                part = (when - before[0]) / (now[0] - before[0])
                return before[1] + part * (now[1] - before[1])
            before = now
        return before[1]


def epochs_of(log, watch, step):
    """What each epoch took: from the end of the last step of the one before
    to the end of its own last. The first begins with the first batch."""
    epochs = []
    begun = log[0]['at']
    count = stalled = 0
    bytes_before = 0
    for line in log:
        if count or epochs:
            stalled += line['waited']
        count += 1
        if line['ends']:
            ended = line['at'] + step
            read = watch.at(ended)
            epochs.append({
                'seconds': ended - begun, 'steps': count, 'stalled': stalled,
                'utilisation': count * step / (ended - begun),
                'disk_bytes': read - bytes_before})
            begun, count, stalled, bytes_before = ended, 0, 0, read
    return epochs


def read_log(path):
    log = []
    for f in fields(path):
        log.append({'at': int(f[1]) / 1e6, 'waited': int(f[2]) / 1e6,
                    'fresh': int(f[3]), 'ends': int(f[4]) > 0})
    return log


def utilisation(log, first, step):
    """From the step with this number to the end."""
    log = log[first:]
    wall = log[-1]['at'] - log[0]['at']
    return (len(log) - 1) * step / wall if wall else 1


def load(a, group, where, run, log):
    args = [a.refrain, 'load', where, '--batch', str(a.shape.batch), '--size',
            str(IMAGE), '--policy', 'fail', '--step-ms', str(a.shape.step_ms),
            '--memory', '%dM' % a.trainer_mib, '--reads-ahead',
            str(a.reads_ahead), '--step-log', log, '--json', '--seed', '3']
    args += CONTENDERS[run['contender']].get('load', [])
    if run['steps']:
        args += ['--steps', str(run['steps']), '--epochs', '1000']
    else:
        args += ['--epochs', str(run['epochs'])]
    if run['order'] == 'cyclic':
        args.append('--in-order')
    changes = os.path.join(a.work, 'changes')
    if 'auto' in args:
        args += ['--echo-log', changes]
    with tempfile.TemporaryFile() as said:
        p = group.start(
            args, stdout=subprocess.PIPE, stderr=said, env=dict(
                os.environ, XDG_CACHE_HOME=os.path.join(a.work, 'index')))
        out = p.communicate()[0]
        if p.returncode:
            said.seek(0)
            sys.exit('epoch: %s: the trainer ended with %d: %s' % (
                run['contender'], p.returncode,
                said.read().decode(errors='replace')[-300:]))
    if 'auto' in args:
        with open(changes, encoding='ascii') as f:
            run['echo_changes'] = [line.split() for line in f]
        os.unlink(changes)
    return json.loads(out)


def remount(a):
    """The kernel forgets what it has of the disk, and of nothing else; also
    when another namespace has a copy of the mount, which keeps its pages."""
    subprocess.run(['umount', a.slow], check=True)
    subprocess.run(['mount', '-o', 'ro', a.loop, a.slow], check=True)
    for folder, _, names in os.walk(a.slow):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


MOUNT_COUNTS = (
    'resident_bytes', 'entries', 'origin_bytes', 'origin_reads', 'hits',
    'misses', 'prefetch_issued', 'prefetch_used', 'prefetch_wasted',
    'staging_peak_bytes', 'staging_dropped', 'reread_bytes',
    'memory_rss_bytes')


def warm(a, group, mount, rate):
    """The cache is full before the first epoch; the disk is fast till then."""
    group.throttle(0)
    if isinstance(mount, Refrain):
        mount.warm()
    else:
        read_all(group, mount.mnt if mount else a.slow)
    group.throttle(rate)


def drops():
    """How often somebody dropped the kernel's caches."""
    return next(int(f[1]) for f in fields('/proc/vmstat')
                if f[0] == 'drop_pagecache')


def measure(a, run, group, mount, rate):
    """The trainer's run; returns its log and the watch."""
    if run['start'] == 'warmed':
        warm(a, group, mount, rate)
    ours = isinstance(mount, Refrain)
    before, dropped = group.read_bytes(), drops()
    origin = mount.status()['origin_bytes'] if ours else 0
    log = os.path.join(a.work, 'steps')
    watch = Watch(group)
    try:
        run['load'] = load(a, group, mount.mnt if mount else a.slow, run, log)
    finally:
        watch.end(before)
    run['caches_dropped'] = drops() - dropped
    run['disk_bytes'] = group.read_bytes() - before
    run['page_cache_bytes'] = group.page_cache()
    run['memory_peak_bytes'] = group.memory_peak()
    if ours:
        status = mount.status()
        run['mount'] = {k: status[k] for k in MOUNT_COUNTS}
        run['origin_bytes'] = status['origin_bytes'] - origin
    return read_log(log), watch


def go(a, run, number, data):
    cache = round(run['share'] * data['charged_bytes'])
    rate = int(trainer_rate(data) * run['speed'])
    run['memory_bytes'] = cache + BESIDE + (
        a.trainer_mib + a.shape.staging_mib << 20)
    run['reads_ahead'] = a.reads_ahead
    remount(a)
    group = Group(a, number, rate, run['memory_bytes'])
    mount = None
    try:
        kind = CONTENDERS[run['contender']]['mount']
        if kind:
            mount = kind(a, group, cache)
        log, watch = measure(a, run, group, mount, rate)
    finally:
        if mount:
            mount.end()
        group.remove()
    judge(run, data, log, watch)


def judge(run, data, log, watch):
    """What the table says."""
    bytes_all, step = data['bytes'], data['step_ms'] / 1000
    resident = run.get('mount', {}).get(
        'resident_bytes', run['share'] * bytes_all)
    share = resident / bytes_all
    run['cached'] = share if 'mount' in run else \
        min(run['page_cache_bytes'] / bytes_all, 1)
    read = run.get('origin_bytes', run['disk_bytes'])
    if run['steps']:
        run['utilisation'] = utilisation(log, 100, step)
        run['echo_last'] = run['load']['echo_factor_last']
        return
    run['epoch'] = epochs_of(log, watch, step)
    later = run['epoch'][1:] if run['start'] == 'cold' else run['epoch']
    if run['start'] == 'cold':
        read -= bytes_all
    n = len(later)
    seconds = sum(e['seconds'] for e in later)
    steps = sum(e['steps'] for e in later)
    run['epoch_seconds'] = seconds / n
    run['ideal_seconds'] = max(
        steps / n * step, (1 - share) * bytes_all /
        (run['speed'] * trainer_rate(data)))
    run['epoch_bytes'] = read / n
    run['least_bytes'] = bytes_all - resident
    run['step_bytes'] = read / steps
    run['stall'] = sum(e['stalled'] for e in later) / seconds
    run['utilisation'] = steps * step / seconds
    run['echo'] = run['load']['realised_echo']


# -- All of them -------------------------------------------------------------

HEAD = ('| order | start | S/T | c | contender | epoch s | / ideal | '
        'read / least | stall | utilisation | e |\n'
        '|---|---|---|---|---|---|---|---|---|---|---|')


def line(r):
    head = '| %s | %s | %g | %g | %s ' % (
        r['order'], r['start'], r['speed'], r['share'], r['contender'])
    if r['steps']:
        return head + '| %d steps | | | | %.3f | %.2f |' % (
            r['steps'], r['utilisation'], r['echo_last'])
    return head + '| %.2f | %.3f | %.3f | %.1f %% | %.3f | %.2f |' % (
        r['epoch_seconds'], r['epoch_seconds'] / r['ideal_seconds'],
        r['epoch_bytes'] / r['least_bytes'], 100 * r['stall'],
        r['utilisation'], r['echo'])


def key(r):
    return tuple(r[k] for k in (
        'order', 'start', 'speed', 'share', 'steps', 'contender'))


def runs_of(a):
    names = a.contenders.split() or list(CONTENDERS)
    if 'rclone' in names and not shutil.which('rclone'):
        print('epoch: rclone is not measured: it is not installed')
        names.remove('rclone')
    for order in a.orders.split():
        for start in a.starts.split():
            for speed in a.speeds.split():
                for share in a.shares.split():
                    for name in names:
                        yield {'order': order, 'start': start,
                               'speed': float(speed), 'share': float(share),
                               'contender': name, 'epochs': a.epochs,
                               'steps': a.steps}


def write(a, data, runs):
    with open(a.out + '.new', 'w') as f:
        json.dump({'bench': 'epoch', 'machine': a.machine, 'shape': a.name,
                   **data, 'runs': runs}, f, indent=1)
    os.rename(a.out + '.new', a.out)


def options():
    p = argparse.ArgumentParser()
    p.add_argument('--pad', metavar='FOLDER')
    p.add_argument('--file-bytes', type=int)
    p.add_argument('--shape', dest='name', default='plain')
    for name in ('refrain', 'slow', 'loop', 'group', 'work', 'disk', 'id',
                 'machine', 'out', 'shares', 'speeds', 'orders', 'starts',
                 'contenders'):
        p.add_argument('--' + name)
    p.add_argument('--epochs', type=int)
    p.add_argument('--steps', type=int)
    p.add_argument('--trainer-mib', type=int)
    p.add_argument('--reads-ahead', type=int)
    p.add_argument('--add', action='store_true')
    a = p.parse_args()
    a.shape = SHAPES[a.name]
    a.trainer_mib = a.trainer_mib or a.shape.trainer_mib
    a.reads_ahead = a.reads_ahead or a.shape.reads_ahead
    return a


def data_of(a):
    """What lies on the slow disk."""
    sizes = [os.path.getsize(os.path.join(folder, name))
             for folder, _, names in os.walk(a.slow) for name in names]
    return {'files': len(sizes), 'bytes': sum(sizes),
            'file_bytes': sum(sizes) // len(sizes),
            'charged_bytes': sum(-(-(n + TRAILER_MAX) // BLOCK) * BLOCK
                                 for n in sizes),
            'batch': a.shape.batch, 'step_ms': a.shape.step_ms}


def main():
    a = options()
    if a.pad:
        pad(a.pad, a.file_bytes or a.shape.file_bytes)
        return
    # End all processes that were started, however this process ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    data = data_of(a)
    runs = []
    if a.add and os.path.exists(a.out):
        with open(a.out) as f:
            runs = json.load(f)['runs']
    print(HEAD, flush=True)
    for number, run in enumerate(runs_of(a)):
        go(a, run, number, data)
        if run['caches_dropped']:
            print('epoch: somebody dropped the caches %d times in this run:' %
                  run['caches_dropped'])
        runs = [r for r in runs if key(r) != key(run)] + [run]
        print(line(run), flush=True)
        write(a, data, runs)


main()
