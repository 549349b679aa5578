# SPDX-License-Identifier: MIT
"""Tests of jobs that share their batches: the batches of each job, and memory
that no job may write to."""

import ctypes
import errno
import hashlib
import json
import os

import numpy as np
import pytest

import refrain
from conftest import IMAGES

NAMES = ('data', 'labels', 'indices', 'substitutes', 'echoes', 'seeds',
         'status', 'crops', 'image', 'class')

JOB = '''
import hashlib, json, sys, refrain
path, options = sys.argv[1], json.loads(sys.argv[2])
steps = int(sys.argv[3])
with refrain.Loader(path, **options) as loader:
    for epoch in range(loader.epochs):
        for batch in loader:
            h = hashlib.sha256(memoryview(batch))
            h.update(memoryview(batch.view('labels')))
            print(batch.step, h.hexdigest(), loader.stats()['share_host_pid'],
                  flush=True)
            if batch.step + 1 == steps:
                sys.stdin.readline()
            del batch
    print('end', loader.stats()['decodes'], flush=True)
'''


def digest(batch):
    """Return the digest of a batch, as a JOB prints it."""
    h = hashlib.sha256(memoryview(batch))
    h.update(memoryview(batch.view('labels')))
    return h.hexdigest()


@pytest.fixture
def shared(options):
    """The keywords of a loader that shares, for one epoch."""
    return dict(options, share='test', epochs=1)


@pytest.fixture
def alone(data, options):
    """Return the stream of a loader that does not share."""
    with refrain.Loader(data, epochs=1, **options) as loader:
        return [digest(batch) for batch in loader]


def tensor_of(capsule):
    """Return (address, flags) of a DLPack capsule; version 0 has no flags."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = ctypes.py_object, ctypes.c_char_p
    if 'versioned' not in repr(capsule):
        at = get(capsule, b'dltensor')
        return ctypes.c_void_p.from_address(at).value, None
    at = get(capsule, b'dltensor_versioned')
    words = (ctypes.c_uint64 * 5).from_address(at)
    return words[4], words[3]


def job(child, data, options, steps=0):
    """Start a process that is a job of a share. After `steps` steps it waits
    for a line."""
    return child(JOB, data, json.dumps(options), steps)


def steps_of(process):
    """Return the hashes of a process until its end, and the number of its
    decodes."""
    hashes = []
    while True:
        words = process.line().split()
        assert words, process.end()
        if words[0] == 'end':
            return hashes, int(words[1])
        assert int(words[0]) == len(hashes)
        hashes.append(words[1])


# -- Memory -------------------------------------------------------------------

def test_arrays_of_a_share_are_read_only(data, shared):
    with refrain.Loader(data, **shared) as loader:
        batch = next(iter(loader))
        for name in NAMES:
            array = np.asarray(batch.view(name))
            assert not array.flags.writeable
            with pytest.raises(ValueError, match='read-only'):
                array[:1] = array[:1]
            with pytest.raises(ValueError):
                array.flags.writeable = True
            with pytest.raises(TypeError, match='not writable'):
                ctypes.c_char.from_buffer(batch.view(name))
            assert memoryview(batch.view(name)).readonly
        assert memoryview(batch).readonly
        assert not np.asarray(batch).flags.writeable
        with pytest.raises(TypeError, match='not writable'):
            ctypes.c_char.from_buffer(batch)


def test_arrays_of_a_share_lie_in_its_memory(data, shared, options):
    with refrain.Loader(data, **shared) as loader:
        batch = next(iter(loader))
        base, size = loader.memory
        assert base <= batch.address and \
            batch.address + batch.nbytes <= base + size
        assert batch.data.ctypes.data == batch.address
    with refrain.Loader(data, **options) as loader:
        batch = next(iter(loader))
        assert loader.memory is None


def test_dlpack_of_a_share_is_flagged_or_copied(data, shared):
    torch = {'__name__': 'torch.utils.dlpack'}
    exec('def ask(x, **k): return x.__dlpack__(**k)', torch)
    with refrain.Loader(data, **shared) as loader:
        batch = next(iter(loader))
        new = {'max_version': (1, 0)}
        for capsule, address, flags in (
                (batch.__dlpack__(), None, None),
                (batch.__dlpack__(**new), batch.address, 1),
                (batch.__dlpack__(copy=False, **new), batch.address, 1),
                (batch.__dlpack__(copy=True, **new), None, 2),
                (torch['ask'](batch), None, None),
                (torch['ask'](batch, **new), None, 2),
                (torch['ask'](batch, copy=False, **new), batch.address, 1),
                (batch.view('data')._lent(), batch.address, None)):
            at, has = tensor_of(capsule)
            assert has == flags
            assert at == address if address else at != batch.address
            assert ctypes.string_at(at, batch.nbytes) == batch.data.tobytes()
            del capsule
        with pytest.raises(BufferError, match='must be copied'):
            batch.__dlpack__(copy=False)
        batch.release()


def test_a_copy_is_its_own_and_a_view_outlives_the_loader(data, shared):
    with refrain.Loader(data, **shared) as loader:
        batch = next(iter(loader))
        want = digest(batch)
        copy = batch.data.copy()
        copy[:] = 7
        assert digest(batch) == want
        view = batch.data
    assert digest(batch) == want
    del batch
    assert not view.flags.writeable and (view != copy).any()


# -- Processes ----------------------------------------------------------------

@pytest.mark.parametrize('more,same', [
    ({}, {}),
    ({'batch': 8, 'share_batch': 16},
     {'batch': 8, 'window': 128 - 16 + 8, 'min_lag': 2}),
])
def test_two_processes_get_what_one_alone_gets(data, shared, options, child,
                                               more, same):
    """`same` are the options with which a job alone has the stream of a share
    with `more`."""
    echo = {'echo': 2, 'epochs': 2}
    shared.update(echo, share_jobs=2, share_slow='wait')
    jobs = [job(child, data, shared), job(child, data, {**shared, **more})]
    ended = [steps_of(j) for j in jobs]
    assert [j.end()[2] for j in jobs] == [0, 0]
    for (hashes, _), keywords in zip(ended, ({}, same)):
        with refrain.Loader(data, **{**options, **echo, **keywords}) as one:
            want = [digest(b) for _ in range(2) for b in one]
        assert hashes == want
    assert sum(decodes for _, decodes in ended) == 2 * IMAGES


@pytest.mark.parametrize('victim', ['host', 'other'])
def test_a_job_that_is_killed_does_not_hurt_the_other(data, shared, alone,
                                                      child, victim):
    options = dict(shared, share_jobs=2)
    jobs = [job(child, data, options, 5) for _ in range(2)]
    hashes = [[j.line().split() for _ in range(5)] for j in jobs]
    host = int(hashes[0][4][2])
    assert host in [j.process.pid for j in jobs]
    jobs.sort(key=lambda j: (j.process.pid == host) == (victim == 'host'))
    jobs[1].process.kill()
    jobs[0].say('')
    rest = []
    while (words := jobs[0].line().split())[0] != 'end':
        rest.append(words[1])
    assert [line[1] for line in hashes[0]] + rest == alone
    assert jobs[0].end()[2] == 0


def test_a_forked_child_of_a_share_is_told_and_the_jobs_go_on(
        data, shared, alone, child):
    other = job(child, data, dict(shared, share_jobs=2))
    loader = refrain.Loader(data, share_jobs=2, **shared)
    it = iter(loader)
    batch = next(it)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            next(it)
        except refrain.Error as e:
            status = 0 if e.errno == errno.ECHILD else 2
        status = status or (3 if digest(batch) != alone[0] else 0)
        loader.close()
        del batch, it, loader
        os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert [digest(batch)] + [digest(b) for b in it] == alone
    del batch
    loader.close()
    assert steps_of(other)[0] == alone


@pytest.mark.parametrize('bad,words', [
    ({'share': None, 'share_jobs': 2}, 'needs a share'),
    ({'share_batch': 24}, 'multiple of batch'),
    ({'share_slow': 'run'}, 'not one of wait'),
    ({'augment': 'eval'}, 'cannot share'),
    ({'share': 'a/b'}, "'/'"),
])
def test_shares_that_make_no_sense_are_refused(data, shared, bad, words):
    with pytest.raises(refrain.ConfigError, match=words):
        refrain.Loader(data, **{**shared, **bad})
