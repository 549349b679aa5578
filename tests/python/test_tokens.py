# SPDX-License-Identifier: MIT
"""Windows of files of tokens, compared with NumPy's slices, serving by
serving. Every token of the files is its own position, and says in which file
it is, so that each window shows where it was read."""

import json

import numpy as np
import pytest

import refrain
from conftest import command

LENGTH = 64
FILE = 1 << 20      # a token is number of the file * FILE + position


def positions(number, count, dtype):
    return (number * FILE + np.arange(count)).astype(dtype)


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    """Files of several types and lengths, by name in their order."""
    top = tmp_path_factory.mktemp('corpus')
    files = {'a.bin': positions(0, 20000, np.uint32),
             'b.npy': positions(1, 64 * 100 + 1, np.int32),
             'c.npy': positions(2, 3333, np.int64),
             'd.npy': positions(3, LENGTH + 5, np.uint32)}
    for name, tokens in files.items():
        if name.endswith('.bin'):
            tokens.tofile(top / name)
        else:
            with open(top / name, 'wb') as file:
                np.lib.format.write_array(file, tokens, version=(2, 0))
    positions(4, LENGTH, np.uint32).tofile(top / 'e.bin')   # one too few
    (top / 'README').write_text('no tokens')
    return top, list(files.values())


def windows(count, overlap=1, fixed=False):
    """The number of windows of a file, and of its shifts."""
    if count < LENGTH + overlap:
        return 0, 0
    most = (count - overlap) // LENGTH
    if fixed:
        return most, 1
    if most > 1 and count - overlap - most * LENGTH < LENGTH - 1:
        most -= 1
    return most, min(LENGTH, count - overlap - most * LENGTH + 1)


def check_batch(batch, files, shifts, overlap=1):
    """All windows of a batch against NumPy's slices. shifts[pass, file] is
    learned from the first window."""
    firsts = np.cumsum([0] + [windows(len(f), overlap)[0] for f in files])
    for row, index in zip(batch['tokens'].values, batch.indices):
        number = int(np.searchsorted(firsts, index, 'right')) - 1
        at = int(row[0]) - number * FILE
        shift = at - int(index - firsts[number]) * LENGTH
        assert shifts.setdefault((batch.epoch, number), shift) == shift
        np.testing.assert_array_equal(
            row, files[number][at:at + LENGTH + overlap])


def load(path, text='tokens length=%d from=u32' % LENGTH, **more):
    return refrain.Loader(path, fields=text, batch=16, **more)


def test_every_window_once_in_a_pass_with_another_shift(corpus):
    path, files = corpus
    counts = [windows(len(f)) for f in files]
    total = sum(n for n, _ in counts)
    shifts, seen, served = {}, {}, 0
    # Each batch is a pass
    with refrain.Loader(path, fields='tokens length=64 from=u32',
                        batch=total,
                        epochs=LENGTH // 2, seed=5) as loader:
        assert loader.stats()['tail_tokens'] == LENGTH + sum(
            len(f) - n * LENGTH - 1 for f, (n, _) in zip(files, counts))
        for batch in every(loader):
            check_batch(batch, files, shifts)
            seen[batch.epoch] = batch.indices.tolist()
            served += len(batch.indices)
    assert served >= 10000
    for indices in seen.values():
        assert sorted(indices) == list(range(total))
    for number, (_, most) in enumerate(counts):
        of = [shifts[p, number] for p in range(LENGTH // 2)]
        assert all(0 <= s < most for s in of)
        if most > 1:
            assert all(a != b for a, b in zip(of, of[1:]))
        assert len(set(of)) == min(most, LENGTH // 2)


def every(loader):
    """All batches of all epochs."""
    for _ in range(loader.epoch, loader.epochs):
        yield from loader


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize('kind', ['i32', 'i64'])
def test_types(tmp_path, dtype, kind):
    tokens = np.random.default_rng(1).integers(0, 256, 5000).astype(dtype)
    tokens.tofile(tmp_path / 'a.bin')
    text = 'x kind=tokens length=100 overlap=0 fixed type=%s from=u%d' % (
        kind, 8 * tokens.itemsize)
    with refrain.Loader(tmp_path / 'a.bin', fields=text, batch=7,
                        in_order=True, epochs=1) as loader:
        rows = []
        for batch in loader:
            assert batch.data.dtype == np.dtype(kind.replace('i', 'int'))
            assert batch.data.shape == (len(batch.indices), 100)
            np.testing.assert_array_equal(batch.data, batch['x'].values)
            rows.append(batch.data.copy())
    np.testing.assert_array_equal(np.concatenate(rows).ravel(), tokens)


def stream(path, threads=2, epochs=2, **more):
    out = []
    with load(path, threads=threads, seed=3, epochs=epochs,
              **more) as loader:
        for batch in every(loader):
            out.append((batch.indices.tolist(), batch.echoes.tolist(),
                        batch.data.copy()))
    return out


@pytest.mark.parametrize('point', ['before', 'after', 'batch'])
def test_echoes_serve_the_same_window(corpus, point):
    path, files = corpus
    out = stream(path, echo=2, echo_point=point, epochs=1)
    first = {}
    for indices, echoes, data in out:
        for index, echo, row in zip(indices, echoes, data):
            if echo == 0:
                first[index] = row
            np.testing.assert_array_equal(first[index], row)
    total = sum(windows(len(f))[0] for f in files)
    assert sum(len(i) for i, _, _ in out) == 2 * total


def equal(a, b):
    return len(a) == len(b) and all(
        x[:2] == y[:2] and np.array_equal(x[2], y[2]) for x, y in zip(a, b))


def test_threads_and_a_share_do_not_change_the_stream(corpus):
    path, _ = corpus
    alone = stream(path, threads=1)
    assert equal(alone, stream(path, threads=4))
    assert equal(alone, stream(path, share='tokens-test'))


def test_resume_at_every_step_goes_on_identically(corpus):
    path, _ = corpus
    whole = stream(path, echo=1.5)
    for step in range(0, len(whole), 7):
        with load(path, seed=3, epochs=2, echo=1.5) as loader:
            batches = every(loader)
            for _ in range(step):
                next(batches).release()
            state = loader.state_dict()
        rest = stream(path, echo=1.5, state=state)
        assert equal(rest, whole[step:])


def test_ranks_cover_each_pass(corpus):
    path, files = corpus
    total = sum(windows(len(f))[0] for f in files)
    seen = []
    for rank in range(3):
        with load(path, rank=rank, world=3, epochs=1) as loader:
            for batch in every(loader):
                seen += batch.indices.tolist()
                check_batch(batch, files, {})
    assert sorted(seen) == list(range(total))


def test_parts_of_a_mix_are_files(corpus):
    path, files = corpus
    with load(path, mix='a.bin=3 b.npy=1', epochs=1) as loader:
        for batch in loader:
            if len(batch.indices) == 16:
                of = batch.data[:, 0] // FILE
                assert np.bincount(of, minlength=2).tolist() == [12, 4]


@pytest.mark.parametrize('text, more, what', [
    ('tokens; image', {}, 'no other fields'),
    ('tokens=x.bin', {}, 'cannot have a member'),
    ('tokens optional', {}, 'cannot be optional'),
    ('tokens length=0', {}, 'length must be'),
    ('tokens', {'source': 'raw', 'record_bytes': 8}, 'source is set'),
    ('tokens', {'sample_bytes': 8}, 'sample_bytes is set'),
    ('tokens length=1000000', {}, 'no window of tokens'),
])
def test_what_does_not_fit_together_is_refused(corpus, text, more, what):
    with pytest.raises(refrain.Error, match=what):
        refrain.Loader(corpus[0], fields=text, batch=4, **more)


@pytest.mark.parametrize('array, what', [
    (np.zeros((4, 500), np.uint16), 'one dimension'),
    (np.zeros(5000, np.float32), 'tokens must be'),
    (np.zeros(5000, '>u2'), 'big-endian'),
    (np.zeros(5000, [('a', 'u2')]), 'plain numbers'),
    (b'\x93NUMPY\x04\0', 'no header of version'),
    (b'abc', 'no header of version'),
])
def test_files_that_are_no_tokens_are_refused(tmp_path, array, what):
    if isinstance(array, bytes):
        (tmp_path / 'a.npy').write_bytes(array)
    else:
        np.save(tmp_path / 'a.npy', array)
    with pytest.raises(refrain.Error, match=what):
        load(tmp_path)


def test_a_cut_array_and_a_half_token_are_refused(tmp_path):
    np.save(tmp_path / 'a.npy', np.zeros(5000, np.uint16))
    data = (tmp_path / 'a.npy').read_bytes()
    (tmp_path / 'a.npy').write_bytes(data[:-1])
    with pytest.raises(refrain.Error, match='ends within its array'):
        load(tmp_path)
    (tmp_path / 'a.npy').unlink()
    (tmp_path / 'a.bin').write_bytes(bytes(4003))
    with pytest.raises(refrain.Error, match='multiple of a token'):
        load(tmp_path)


def test_the_command_line_has_the_same_stream(corpus):
    path, _ = corpus
    text = 'tokens length=64 from=u32'
    out = json.loads(command('load', path, '--fields', text, '-b', 16,
                             '--epochs', 2, '--seed', 3, '--json'))
    with load(path, seed=3, epochs=2) as loader:
        for batch in every(loader):
            batch.release()
        assert loader.stats()['stream_hash'] == out['stream_hash']
        assert loader.stats()['tail_tokens'] == out['tail_tokens']
