# SPDX-License-Identifier: MIT
"""Tell a refrain mount in which order a training will read its files.

A sampler knows the order of an epoch before its first file is read. Given
that order, a refrain mount has each file in memory when its turn comes. One
file, standard library only: copy it next to the trainer, or put its directory on
PYTHONPATH. Where the dataset does not lie on a refrain mount, nothing
happens, so a trainer may use it everywhere.

    import refrain_plan

    dataset = torchvision.datasets.ImageFolder('/data/imagenet/train', ...)
    order = refrain_plan.PlannedSampler(
        torch.utils.data.RandomSampler(dataset),
        [path for path, label in dataset.samples], batch=256)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=256, sampler=order, num_workers=8)
    for epoch in range(90):
        for images, labels in loader:
            ...

PlannedSampler draws the whole order of an epoch when the epoch begins, sends
it to the mount, and returns it unchanged. For other loaders there is Plan:

    plan = refrain_plan.Plan('/data/imagenet/train', batch=256)
    plan.epoch(0, paths_in_order)          # returns at once
    plan.epoch(1, paths_of_the_next)       # as soon as it is known
    plan.progress(files_that_were_used)    # optional: the mount sees reads
    plan.close()

A thread of its own talks to the mount; no call waits for it, and no failure
stops the trainer. A plan that fails, or
leaves out names that are not files of the mount, says so in one warning, and
plan.error has the reason. If the daemon of a mount that is held dies or is
upgraded, the next daemon gets the plan again, from the position of the reader.
"""

import itertools
import json
import os
import queue
import socket
import struct
import threading
import warnings

__all__ = ['Plan', 'PlannedSampler', 'find_mount']

_XATTR = 'user.refrain.control'
_REQUEST_BYTES = 512 << 10
# The interval in seconds at which a plan without news checks whether the
# daemon has ended.
_LOOK_S = 0.5
# The first and the longest pause between attempts to reach the next daemon.
_PAUSE_S, _PAUSE_MAX_S = 0.01, 1.0


class _Gone(OSError):
    """The daemon has ended; another one may continue with the mount."""


class _Epoch:
    """An epoch that the reader has not finished."""

    def __init__(self, number, paths, first):
        self.number = number
        self.paths = list(paths)
        self.first = first      # number of files in the epochs before it
        self.counted = False    # its left-out names were counted

    def end(self):
        return self.first + len(self.paths)


def _unescape(field):
    """Decode a field of mountinfo, where blanks are octal escapes."""
    parts = field.split(b'\\')
    return parts[0] + b''.join(
        bytes([int(p[:3], 8)]) + p[3:] for p in parts[1:])


def _mount_owner(path):
    """The user who owns the refrain mount whose root this is, or None. Any
    directory can have the attribute, so the kernel's list of mounts
    decides."""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        real = os.readlink(b'/proc/self/fd/%d' % fd)
        with open('/proc/self/fdinfo/%d' % fd) as f:
            ids = [line.split()[1] for line in f if line[:7] == 'mnt_id:']
    finally:
        os.close(fd)
    with open('/proc/self/mountinfo', 'rb') as f:
        lines = [line.rstrip(b'\n').partition(b' - ') for line in f]
    for where, _, what in lines:
        mount, fs = where.split(b' '), what.split(b' ')
        if (mount[0].decode() in ids and fs[0] == b'fuse.refrain' and
                mount[3] == b'/' and _unescape(mount[4]) == real):
            for option in fs[2].split(b','):
                if option[:8] == b'user_id=':
                    return int(option[8:])
    return None


def _find_mount(path):
    path = os.path.realpath(path)
    while True:
        try:
            owner = _mount_owner(path)
            if owner is not None:
                return path, os.fsdecode(os.getxattr(path, _XATTR)), owner
        except (OSError, AttributeError, ValueError, IndexError):
            pass
        parent = os.path.dirname(path)
        if parent == path:
            return None, None, None
        path = parent


def find_mount(path):
    """The root and the control socket of the refrain mount that a path lies
    on, or (None, None)."""
    return _find_mount(path)[:2]


def _connect(sock, path, owner):
    """Connect to the daemon, which must run as the mount's owner or root."""
    sock.connect(path)
    peer = struct.unpack('3i', sock.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize('3i')))
    if peer[1] & 0xffffffff not in (owner, 0):
        raise OSError('the control socket is not served by the owner of '
                      'the mount')


def _json_path(path):
    try:
        path.encode('utf-8')
        return path
    except UnicodeEncodeError:
        return {'hex': os.fsencode(path).hex()}


def _warn(text):
    try:
        warnings.warn('refrain: ' + text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        pass    # warnings may be errors here, but the thread must continue


class Plan:
    """A plan on the mount that `root` lies on. `active` is False, and calls do
    nothing, if there is no such mount.

    `left_out` counts the names that have no place in the plan: names that are
    not files of the mount, empty files, and names that occur twice in an
    epoch. `error` is None, or says why the plan has ended or which name was
    the first that is not a file of the mount. `returns` counts the daemons
    that got the plan after the first one.

    admit_planned=True: while the plan is open, the cache of the mount admits
    only files that a plan names."""

    def __init__(self, root, batch=None, echo=None, window=None, step_ms=None,
                 fresh=None, slack=None, admit_planned=None):
        self.error = None
        self.left_out = 0
        self.returns = 0
        self._warned = False
        self._mount, self._socket_path, self._owner = _find_mount(root)
        self._root = os.path.realpath(root)
        self._cwd = os.path.abspath(os.curdir)
        self._base = None       # directory of relative paths, or None
        self.active = self._mount is not None
        self._reported = 0
        if not self.active:
            return
        settings = {'cmd': 'plan', 'batch': batch, 'echo': echo,
                    'window': window, 'step_ms': step_ms, 'fresh': fresh,
                    'slack': slack, 'admit_planned': admit_planned}
        if isinstance(echo, float):
            settings['echo'] = '%.3f' % echo
        self._epochs = []       # epochs that are not over
        self._files = 0         # number of files of all epochs
        self._used = 0          # how many of these are known to be used
        self._skipped = 0       # how many of these this daemon did not get
        self._missing = 0       # number of names that the plan lacks
        self._closing = threading.Event()
        self._queue = queue.Queue()
        self._thread = threading.Thread(
            target=self._run, name='refrain-plan', daemon=True,
            args=({k: v for k, v in settings.items() if v is not None},))
        self._pid = os.getpid()
        self._thread.start()

    def epoch(self, number, paths):
        """Send the paths of an epoch, in the order in which they will be read.
        `paths` is any iterable; a thread reads it, so do not change it. The
        paths are kept until the epoch is over.

        Relative paths are relative to the working directory in which the plan
        was made or, if they do not exist there, to `root`: the first path
        that exists decides for all."""
        if self._alive():
            self._queue.put(('epoch', number, paths))

    def progress(self, position):
        """Report how many files of all epochs of this plan were used."""
        if self._alive() and position > self._reported:
            self._reported = position
            self._queue.put(('progress', position))

    def close(self, wait=5.0):
        """End the plan."""
        if self._alive():
            self._closing.set()
            self._queue.put(None)
            self._thread.join(wait)
        self.active = False

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def flush(self, wait=None):
        """Wait until the mount has received everything; for tests."""
        done = threading.Event()
        if self._alive():
            self._queue.put(('flush', done))
            while self._thread.is_alive() and not done.wait(0.05):
                if wait is not None:
                    wait -= 0.05
                    if wait <= 0:
                        break
        return done.is_set()

    # -- The thread ---------------------------------------------------------

    def _alive(self):
        # After a fork, the child does not have the thread.
        return self.active and self._pid == os.getpid()

    def _run(self, settings):
        self._pause = 0
        try:
            while not self._talk(settings):
                settings['again'] = True
                if self._closing.wait(self._pause):
                    break
                self._pause = min(2 * self._pause + _PAUSE_S, _PAUSE_MAX_S)
                self._find_again()
        except (OSError, ValueError, TypeError) as e:
            self.error = str(e)
            _warn('the plan for %s has ended: %s' % (self._mount, e))
        self.active = False

    def _talk(self, settings):
        """Talk to a daemon until the plan ends. False: the daemon ended."""
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                _connect(sock, self._socket_path, self._owner)
                self._lines = sock.makefile('rwb')
                self._begin(settings)
                self._pause = 0
                self._serve()
            return True
        except _Gone:
            return False
        except (ConnectionRefusedError, FileNotFoundError):
            if 'again' not in settings:
                raise
            return False

    def _find_again(self):
        """Find the socket of the next daemon. getxattr() waits for that daemon,
        and fails if there will be none."""
        self._owner = _mount_owner(self._mount)
        if self._owner is None:
            raise OSError('the mount is gone')
        self._socket_path = os.fsdecode(os.getxattr(self._mount, _XATTR))

    def _begin(self, settings):
        """Send the plan from the position of the reader."""
        first = settings.get('fresh', 0)
        self._skipped, self._missing = self._used, 0
        if self._used > 0:
            settings = dict(settings, fresh=first + self._used)
        self._ask(settings)
        for epoch in self._epochs:
            self._send_epoch(epoch)
        self.returns += 'again' in settings

    def _serve(self):
        while True:
            try:
                job = self._queue.get(timeout=_LOOK_S)
            except queue.Empty:
                self._look()
                continue
            if job is None:
                return
            if job[0] == 'epoch':
                self._epochs.append(_Epoch(job[1], job[2], self._files))
                self._files = self._epochs[-1].end()
                self._send_epoch(self._epochs[-1])
            elif job[0] == 'progress':
                self._note_used(job[1])
                # Names that were left out have no position.
                self._ask({'cmd': 'plan-progress', 'position': max(
                    0, job[1] - self._skipped - self._missing)})
            else:
                job[1].set()

    def _look(self):
        """Ask for the position of the readers; fails if the daemon ended."""
        answer = self._ask({'cmd': 'plan-status'})
        self._note_used(self._skipped + answer['done'])

    def _note_used(self, files):
        self._used = max(self._used, min(files, self._files))
        while self._epochs and self._epochs[0].end() <= self._used:
            del self._epochs[0]

    def _ask(self, request):
        line = json.dumps(request, separators=(',', ':')) + '\n'
        try:
            self._lines.write(line.encode('utf-8'))
            self._lines.flush()
            line = self._lines.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = b''
        if not line.endswith(b'\n'):
            raise _Gone('the mount is gone')
        answer = json.loads(line)
        if not answer.get('ok'):
            raise OSError(answer.get('error', 'the mount is gone'))
        return answer

    def _inside(self, path):
        """The path below the mount's root; None if it is not below it."""
        path = os.fsdecode(path)
        if not os.path.isabs(path):
            path = os.path.join(self._base or self._base_of(path), path)
        return self._below_mount(path)

    def _base_of(self, path):
        """The directory that a relative path is relative to. The first path
        that exists decides for all."""
        for base in self._cwd, self._root:
            there = os.path.join(base, path)
            if self._below_mount(there) and os.path.lexists(there):
                self._base = base
                return base
        return self._root

    def _below_mount(self, path):
        if not path.startswith(self._mount + os.sep):
            path = os.path.realpath(path)
        path = os.path.normpath(path)
        if not path.startswith(self._mount + os.sep):
            return None
        return path[len(self._mount) + 1:]

    def _send_epoch(self, epoch):
        before = self._missing
        first = max(0, self._skipped - epoch.first)
        self._send_names(epoch.number, itertools.islice(
            epoch.paths, first, None))
        if not epoch.counted:
            epoch.counted = True
            self.left_out += self._missing - before

    def _send_names(self, number, paths):
        names, size = [], 0
        for path in paths:
            name = self._inside(path)
            if name is None:
                self._missing += 1
                self._not_there('%s: is not on the mount' % os.fsdecode(path))
                continue
            names.append(_json_path(name))
            # An upper bound of the length of the name with its escapes.
            size += 6 * len(name) + 16
            if size >= _REQUEST_BYTES:
                self._add(number, names)
                names, size = [], 0
        self._add(number, names)

    def _add(self, number, names):
        if not names:
            return
        answer = self._ask({'cmd': 'plan-add', 'epoch': number,
                            'paths': names})
        self._missing += len(names) - answer['added']
        if answer['unknown'] + answer['not_file'] > 0:
            # Names that occur twice are normal: a sampler may pad its order.
            self._not_there(next(
                (text for text in answer['left_out']
                 if not text.endswith(': is already in this epoch')),
                'some names are not files of the mount'))

    def _not_there(self, what):
        """Warn once that names are left out, and name the first of them."""
        if self._warned:
            return
        self._warned = True
        self.error = ('%s; left out of the plan for %s, as are all such names'
                      % (what, self._mount))
        _warn(self.error)


class PlannedSampler:
    """A sampler that sends the mount the order of each epoch when it begins.
    `paths[i]` is the file of index i, absolute or relative as for Plan.epoch().
    `root` is a directory on the mount; if not given, the directory of the
    first path. Other arguments are those of Plan. The indices of the wrapped
    sampler are passed on unchanged."""

    def __init__(self, sampler, paths, root=None, **settings):
        self.sampler = sampler
        self.paths = paths
        if root is None:
            root = os.path.dirname(os.fspath(paths[0])) if len(paths) else '/'
        self.plan = Plan(root, **settings)
        self._epoch = 0
        self._told = 0

    def __iter__(self):
        if not self.plan.active:
            yield from self.sampler
            return
        order = list(self.sampler)
        number, self._epoch = self._epoch, self._epoch + 1
        # The previous epoch is over, even if its reader stopped in the middle.
        self.plan.progress(self._told)
        self._told += len(order)
        self.plan.epoch(number, [self.paths[i] for i in order])
        yield from order

    def __len__(self):
        return len(self.sampler)

    def set_epoch(self, epoch):
        """Like DistributedSampler.set_epoch()."""
        if hasattr(self.sampler, 'set_epoch'):
            self.sampler.set_epoch(epoch)
