# SPDX-License-Identifier: MIT
"""Fixtures and helpers that the tests of the Python package share."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

BUILD = pathlib.Path(os.environ.get('REFRAIN_TEST_BUILD', '.')).resolve()
TREE = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = int(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))
IMAGES, CLASSES = 300, 3


def command(*words):
    """Return the output of `refrain` with these words."""
    return subprocess.run([BUILD / 'refrain', *map(str, words)], check=True,
                          stdout=subprocess.PIPE).stdout.decode()


@pytest.fixture(scope='session')
def data(tmp_path_factory):
    """A directory of small JPEGs; tests must not change it."""
    top = tmp_path_factory.mktemp('data') / 'images'
    command('make-dataset', '--classes', CLASSES, '--images', IMAGES,
            '--size', '48x36', top)
    return top


@pytest.fixture
def listed(data, tmp_path, options):
    """listed(n) makes a list of n examples, in which some images appear more
    than once."""
    def make(examples):
        paths = sorted(path.relative_to(data) for path in data.glob('*/*.jpg'))
        lines = [str(paths[i % IMAGES]) for i in range(examples)]
        (tmp_path / 'list').write_text('\n'.join(lines) + '\n')
        options['root'] = data
        return tmp_path / 'list'

    return make


@pytest.fixture(autouse=True, scope='session')
def _runtime():
    """Return the directory in which shares have their sockets."""
    # the path of a socket must be short
    run = tempfile.mkdtemp(prefix='refrain-run-')
    os.environ['XDG_RUNTIME_DIR'] = run
    yield
    shutil.rmtree(run)


@pytest.fixture
def own(tmp_path):
    """A copy of the dataset that a test may damage."""
    top = tmp_path / 'images'
    command('make-dataset', '--classes', CLASSES, '--images', 60, '--size',
            '48x36', top)
    return top


@pytest.fixture
def options():
    """The keywords of a small loader."""
    return {'batch': 16, 'size': 32, 'window': 128, 'threads': 2, 'seed': 5,
            'memory_bytes': '64M'}


class Child:
    """A Python process that runs a text, and whose output is read line by
    line."""

    def __init__(self, text, *args):
        self.process = subprocess.Popen(
            [sys.executable, '-c', text, *map(str, args)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def say(self, line):
        """Write a line to the process's standard input."""
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def line(self):
        """Return the next line, without its end."""
        return self.process.stdout.readline().rstrip('\n')

    def end(self):
        """Wait for the end. Return (the rest of the output, the errors, the
        status)."""
        out, err = self.process.communicate(timeout=60 * PATIENCE)
        return out, err, self.process.returncode


@pytest.fixture
def child():
    """Child(), which is killed at the end of the test."""
    children = []

    def start(text, *args):
        children.append(Child(text, *args))
        return children[-1]

    yield start
    for c in children:
        c.process.kill()
        c.process.communicate(timeout=60 * PATIENCE)


class Mount:
    """A mount of a directory, which a test can make hang."""

    def __init__(self, source, tmp_path):
        self.top = tmp_path / 'mnt'
        self.top.mkdir()
        self.daemon = subprocess.Popen(
            [BUILD / 'refrain', 'mount', source, self.top, '--cache',
             '%s:64K' % (tmp_path / 'tier'), '--foreground'])
        while not os.path.ismount(self.top):
            assert self.daemon.poll() is None
            time.sleep(0.01)

    def wait_for_a_plan(self, loader):
        """Wait until a loader has found the mount, and no longer asks it for
        names."""
        status = {'planned_positions': 0}
        while not status['planned_positions']:
            assert loader.process.poll() is None, 'it has ended'
            status = json.loads(subprocess.check_output(
                [BUILD / 'refrain', 'status', '--json', self.top]))

    @contextlib.contextmanager
    def hanging(self):
        """Make the mount hang, and let it continue at the end, even after a
        failure. The kernel lets no process end while the daemon has a read of
        it."""
        self.daemon.send_signal(signal.SIGSTOP)
        # Wait until the last thread has stopped, because the others still
        # answer.
        os.waitid(os.P_PID, self.daemon.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self.daemon.send_signal(signal.SIGCONT)

    def end(self):
        """Unmount. A process that a failed test has left in the mount may stay
        there."""
        subprocess.run([BUILD / 'refrain', 'umount', '--lazy', self.top],
                       check=True)
        self.daemon.wait()


class HeldMount:
    """A mount of a directory in the background, with a holder."""

    def __init__(self, source, tmp_path):
        self.top = tmp_path / 'held'
        self.top.mkdir()
        command('mount', source, self.top, '--cache',
                '%s:4K' % (tmp_path / 'tier'))

    def status(self):
        return json.loads(command('status', '--json', self.top))

    def kill(self):
        """Kill the daemon; the holder starts another one."""
        os.kill(self.status()['pid'], signal.SIGKILL)

    def end(self):
        command('umount', self.top)


@pytest.fixture
def held(own, tmp_path):
    """A mount of `own` that outlives its daemon."""
    if os.geteuid() != 0 or not os.access('/dev/fuse', os.W_OK):
        pytest.skip('needs root and FUSE')
    made = HeldMount(own, tmp_path)
    yield made
    made.end()


@pytest.fixture
def mount(own, tmp_path):
    """A mount of `own`."""
    if os.geteuid() != 0 or not os.access('/dev/fuse', os.W_OK):
        pytest.skip('needs root and FUSE')
    made = Mount(own, tmp_path)
    yield made
    made.end()
