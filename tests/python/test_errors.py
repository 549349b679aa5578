# SPDX-License-Identifier: MIT
"""Tests of failures, callbacks, threads, processes, and Ctrl-C."""

import contextlib
import errno
import fcntl
import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

import refrain
from conftest import PATIENCE


FEW = {'batch': 4, 'size': 8, 'in_order': True, 'batches_ahead': 1,
       'reads_ahead': 2, 'threads': 1}


# Limit for calls that must not hang, generous for a busy machine.
SOON_S = 10 * PATIENCE


_leases = {}


def hang(own):
    """Take a lease on the last example and never give it up, so opening it
    hangs. A loader with FEW has not read that far."""
    path = sorted(own.glob('*/*.jpg'))[-1]
    # without this, the signal would end the process
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    _leases[path] = os.open(path, os.O_RDWR)
    fcntl.fcntl(_leases[path], fcntl.F_SETLEASE, fcntl.F_WRLCK)
    return path


def let_go(path):
    """End the lease, so that calls that hang continue."""
    os.close(_leases.pop(path))


# -- What is said -------------------------------------------------------------

def test_a_dataset_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError) as e:
        refrain.Loader(tmp_path / 'none', batch=4)
    assert isinstance(e.value, refrain.NotFoundError)
    assert (e.value.errno, e.value.stage) == (errno.ENOENT, 'open')
    assert e.value.path == e.value.filename == str(tmp_path / 'none')
    with pytest.raises(refrain.Error) as e:
        refrain.Loader(tmp_path, batch=4)
    assert e.value.errno == errno.ENODATA


def test_a_damaged_list_is_not_a_damaged_state(tmp_path):
    (tmp_path / 'list').write_text('/absolute.jpg\n')
    with pytest.raises(refrain.Error, match='line 1') as e:
        refrain.Loader(tmp_path / 'list', batch=4)
    assert not isinstance(e.value, refrain.StateError)
    assert (e.value.errno, e.value.stage) == (errno.EBADMSG, 'open')
    assert e.value.path == str(tmp_path / 'list')


def test_damage_is_named_with_path_stage_and_step(own, options):
    bad = sorted(own.glob('*/*.jpg'))[20]
    bad.write_bytes(bad.read_bytes()[:500])
    options.update(policy='fail', in_order=True, batch=8)
    with refrain.Loader(own, **options) as loader:
        it = iter(loader)
        next(it), next(it)
        for _ in range(2):
            with pytest.raises(refrain.Error) as e:
                next(it)
            assert e.value.errno == errno.EBADMSG
            assert e.value.stage == 'decode' and e.value.step == 2
            assert own / e.value.path == bad
            assert 'cannot decode' in str(e.value)


def test_a_time_out_names_what_is_waited_for(own):
    loader = refrain.Loader(own, timeout=0.3, **FEW)
    path = hang(own)
    for _ in range(20):
        with pytest.raises(TimeoutError) as e:
            for _ in loader:
                pass
        assert isinstance(e.value, refrain.TimeoutError)
        assert e.value.errno == errno.ETIMEDOUT
        # On a busy machine, another step may take as long.
        if loader.step == 14:
            break
    with pytest.raises(TimeoutError) as e:
        next(loader)
    assert e.value.stage == 'read' and own / e.value.path == path
    begun = time.monotonic()
    loader.close()
    assert time.monotonic() - begun < SOON_S
    let_go(path)


# -- Callbacks ----------------------------------------------------------------

def test_a_function_decodes(own):
    seen = set()

    def decode(data, path, index):
        seen.add((path, index))
        assert data[:2] == b'\xff\xd8'
        return np.full((10, 12, 3), index, np.uint8)

    with refrain.Loader(own, batch=10, size=8, augment='none', decode=decode,
                        decoded_max_bytes=360, in_order=True) as loader:
        batches = [b.data.copy() for b in loader]
        names = {(loader.path(i), i) for i in range(60)}
    assert seen == names
    for i, image in enumerate(np.concatenate(batches)):
        assert image.shape == (8, 8, 3) and (image == i).all()


def test_a_function_augments(own):
    def augment(data, shape, seed):
        assert shape == (2, 2, 3) and len(data) == 12
        return np.array([data[0], seed], np.uint64)

    def decode(data, path, index):
        return np.full((2, 2, 3), index, np.uint8)

    with refrain.Loader(own, batch=20, decode=decode, decoded_max_bytes=12,
                        augment_fn=augment, sample_bytes=16) as loader:
        for b in loader:
            got = b.data.view(np.uint64)
            assert (got[:, 0] == b.indices).all()
            assert (got[:, 1] == b.seeds).all()


@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
@pytest.mark.parametrize('error,number', [
    (ZeroDivisionError('by hand'), errno.EBADMSG),
    (PermissionError(errno.EACCES, 'by hand'), errno.EACCES)])
def test_an_exception_of_a_function_is_damage(own, error, number):
    def decode(data, path, index):
        if index == 13:
            raise error
        return bytes(4)

    some = {'batch': 10, 'decode': decode, 'decoded_max_bytes': 4,
            'sample_bytes': 4, 'in_order': True}
    with refrain.Loader(own, policy='zero', **some) as loader:
        status = np.concatenate([b.status.copy() for b in loader])
    assert status[13] == -number and not np.delete(status, 13).any()
    with refrain.Loader(own, policy='fail', **some) as loader:
        with pytest.raises(refrain.Error) as e:
            list(b.step for b in loader)
    assert e.value.errno == number and e.value.__cause__ is error


@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
def test_what_a_function_returns_must_fit(own):
    with refrain.Loader(own, batch=10, decode=lambda *a: bytes(5),
                        decoded_max_bytes=4, sample_bytes=4,
                        policy='fail') as loader:
        with pytest.raises(refrain.Error) as e:
            next(iter(loader))
    assert 'room for 4' in str(e.value.__cause__)


# -- Threads ------------------------------------------------------------------

def test_threads_share_a_loader(data, options):
    steps, errors = [], []
    options.update(epochs=4, batch=4)
    with refrain.Loader(data, **options) as loader:
        total = loader.total_steps

        def run():
            try:
                while True:
                    steps.append(next(loader).step)
            except StopIteration:
                pass
            except BaseException as e:      # pylint: disable=W0718
                errors.append(e)

        team = [threading.Thread(target=run) for _ in range(4)]
        for t in team:
            t.start()
        for t in team:
            t.join()
    assert not errors and sorted(steps) == list(range(total))


def test_two_loaders_in_two_threads_have_streams_of_their_own(data, options):
    def stream(seed, together=None):
        with refrain.Loader(data, **dict(options, seed=seed)) as loader:
            if together:
                together.wait()
            return [(b.seeds.tolist(), b.data.sum()) for _ in range(2)
                    for b in loader]

    got, together = {}, threading.Barrier(2)
    team = [threading.Thread(target=lambda seed=seed: got.update(
        {seed: stream(seed, together)})) for seed in (1, 2)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    assert got == {seed: stream(seed) for seed in (1, 2)}


def test_close_ends_those_who_wait(own):
    loader = refrain.Loader(own, **FEW)
    path = hang(own)
    errors, begun = [], threading.Barrier(4)

    def run():
        begun.wait()
        try:
            for _ in range(60):
                next(loader)
        except refrain.ClosedError as e:
            errors.append(e)

    team = [threading.Thread(target=run) for _ in range(3)]
    for t in team:
        t.start()
    begun.wait()
    while loader.step < 14:
        pass
    then = time.monotonic()
    loader.close()
    for t in team:
        t.join()
    assert len(errors) == 3 and time.monotonic() - then < SOON_S
    let_go(path)


def let_others_run(times):
    """Let other threads run. A thread that takes the GIL then and keeps it is
    not interrupted."""
    for _ in range(times):
        time.sleep(1e-4)


def test_others_run_while_one_waits(own):
    """Other threads can close the loader long before its time is over."""
    loader = refrain.Loader(own, timeout=SOON_S, **FEW)
    path = hang(own)
    errors = []

    def run():
        try:
            for _ in loader:
                pass
        except refrain.Error as e:
            errors.append(type(e))

    waiting = threading.Thread(target=run)
    waiting.start()
    while loader.step < 14:
        let_others_run(1)
    let_others_run(200)
    loader.close()
    waiting.join()
    assert errors == [refrain.ClosedError]
    let_go(path)


def test_others_run_while_one_opens(mount):
    """Other threads can let the mount continue long before the time is over."""
    list(mount.top.iterdir())
    opened = []
    opening = threading.Thread(target=lambda: opened.append(refrain.Loader(
        mount.top, open_timeout_ms=SOON_S * 1000, **FEW)))
    with mount.hanging():
        opening.start()
        let_others_run(200)
        assert not opened
    opening.join()
    opened[0].close()


# -- Processes ----------------------------------------------------------------

def test_a_forked_child_is_told_and_the_parent_goes_on(data, options):
    loader = refrain.Loader(data, **options)
    it = iter(loader)
    batch = next(it)
    want = batch.data.sum()
    pid = os.fork()
    if pid == 0:
        status = 0
        for call in (lambda: next(it), lambda: len(loader), loader.stats,
                     lambda: loader.epoch, lambda: loader.set_epoch(1),
                     loader.state_dict, batch.state_dict):
            try:
                call()
                status = 1
            except refrain.Error as e:
                if e.errno != errno.ECHILD or 'fork' not in str(e):
                    status = 2
        status = status or (3 if batch.data.sum() != want else 0)
        loader.close()
        del batch, it, loader
        os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert batch.data.sum() == want
    assert [b.step for b in it] == list(range(1, len(loader)))
    loader.close()


def stream_of(data, options, out):
    """Runs in a process that was spawned."""
    with refrain.Loader(data, **options) as loader:
        out.put([b.seeds.tolist() for b in loader])


def test_a_spawned_process_opens_its_own(data, options):
    context = multiprocessing.get_context('spawn')
    out = context.SimpleQueue()
    with refrain.Loader(data, **options) as loader:
        p = context.Process(target=stream_of, args=(data, options, out))
        p.start()
        want = [b.seeds.tolist() for b in loader]
    assert out.get() == want
    p.join()
    assert p.exitcode == 0


# -- Ctrl-C -------------------------------------------------------------------

WAIT = '''
import signal, sys, time, refrain
signal.signal(signal.SIGINT, signal.default_int_handler)
print('begins', flush=True)
try:
    loader = refrain.Loader(sys.argv[1], batch=4, size=8, in_order=True,
                            batches_ahead=1, reads_ahead=2, threads=1)
    print('open', flush=True)
    sys.stdin.readline()
    for batch in loader:
        print('step', batch.step, flush=True)
except KeyboardInterrupt:
    print('interrupted', time.monotonic(), flush=True)
    if len(sys.argv) > 2:
        loader.close()
        print('closed', time.monotonic(), flush=True)
'''


def wait_until_it_waits(process):
    """Wait until the main thread of the process sleeps, each time that it is
    checked."""
    where = '/proc/%d/stat' % process.pid
    before = 0
    while before < 5:
        with open(where, encoding='ascii') as f:
            state = f.read().rpartition(')')[2].split()[0]
        assert state not in 'ZX', process.communicate()
        before = before + 1 if state == 'S' else 0
        time.sleep(0.02)


def kept_waiting(*pids):
    """Return the seconds for which these main threads had no processor to run
    on."""
    waited_ns = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            with open('/proc/%d/schedstat' % pid, encoding='ascii') as f:
                waited_ns += int(f.read().split()[1])
    return waited_ns / 1e9


def interrupt(c):
    """Send SIGINT. Return the time until it was noticed: 100 ms, or more on a
    busy machine."""
    pids = os.getpid(), c.process.pid
    wait_until_it_waits(c.process)
    waited, then = kept_waiting(*pids), time.monotonic()
    c.process.send_signal(signal.SIGINT)
    words = c.line().split()
    while words[:1] == ['step']:
        words = c.line().split()
    assert words[:1] == ['interrupted'], words
    waited = kept_waiting(*pids) - waited
    assert float(words[1]) - then < 0.1 * PATIENCE + waited
    return float(words[1])


def test_ctrl_c_while_the_storage_of_a_read_hangs(own, child):
    c = child(WAIT, own, 'close')
    assert (c.line(), c.line()) == ('begins', 'open')
    path = hang(own)
    c.say('go on')
    while (line := c.line()) != 'step 13':
        assert line.startswith('step'), line
    then = interrupt(c)
    assert float(c.line().split()[1]) - then < SOON_S
    let_go(path)
    assert c.end()[2] == 0


def test_ctrl_c_while_the_storage_of_an_open_hangs(mount, child):
    list(mount.top.iterdir())
    with mount.hanging():
        c = child(WAIT, mount.top)
        assert c.line() == 'begins'
        then = interrupt(c)
        assert c.end()[2] == 0
        assert time.monotonic() - then < SOON_S


def test_ctrl_c_while_the_mount_of_a_next_hangs(mount, child):
    c = child(WAIT, mount.top, 'close')
    assert (c.line(), c.line()) == ('begins', 'open')
    mount.wait_for_a_plan(c)
    with mount.hanging():
        c.say('go on')
        then = interrupt(c)
        assert float(c.line().split()[1]) - then < SOON_S
    assert c.end()[2] == 0
