# SPDX-License-Identifier: MIT
"""Tests of the values of keywords, and of the exceptions that are not
refrain.Error."""

import decimal
import fractions
import pathlib
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import refrain
from conftest import IMAGES, TREE

MEAN, STD, JITTER = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3], [0.4, 0.3, 0.1]


def first(data, options, **more):
    """Return the samples of the first batch."""
    with refrain.Loader(data, **{**options, **more}) as loader:
        return next(iter(loader)).data.copy()


def tensors(values):
    """Return the values as PyTorch's tensors, of two types and of two
    shapes."""
    torch = pytest.importorskip('torch')
    return [torch.tensor(values), torch.tensor(values).double(),
            torch.tensor(values)[:, None, None]]


@pytest.mark.parametrize('kind', ['array', 'tensor', 'other'])
def test_mean_std_and_jitter_may_be_arrays_and_tensors(data, options, kind):
    options.update(type='f32')
    for name, values, more in (('mean', MEAN, {'std': STD}),
                               ('std', STD, {'mean': MEAN}),
                               ('jitter', JITTER, {})):
        want = first(data, options, **{name: values}, **more)
        if kind == 'array':
            ways = [np.array(values), np.array(values, np.float32),
                    np.array(values).reshape(3, 1, 1)]
        elif kind == 'tensor':
            ways = tensors(values)
        else:
            ways = [tuple(values), (v for v in values),
                    [np.float64(v) for v in values], ','.join(map(str, values))]
        for way in ways:
            got = first(data, options, **{name: way}, **more)
            assert np.allclose(got, want, atol=1e-5), (name, way)
        assert not np.allclose(first(data, options), want, atol=1e-5)


@pytest.mark.parametrize('zero', [0, '0', np.int64(0)])
def test_a_size_of_0_is_the_default(data, options, zero):
    assert first(data, options, size=zero).shape == (16, 224, 224, 3)


@pytest.mark.parametrize('two', [
    2, np.int64(2), np.uint8(2), np.array(2), 2.0, np.float32(2), '2',
    fractions.Fraction(2), decimal.Decimal(2)])
def test_a_number_may_be_of_any_type(data, options, two):
    options.update(batch=two, threads=two, echo=two, epochs=two, seed=two,
                   window=256)
    with refrain.Loader(data, **options) as loader:
        assert loader.epochs == 2 and loader.total_steps == 2 * IMAGES
        assert next(loader).count == 2


def test_a_number_may_be_a_tensor(data, options):
    torch = pytest.importorskip('torch')
    options.update(batch=torch.tensor(8), echo=torch.tensor(1.5), epochs=1)
    with refrain.Loader(data, **options) as loader:
        assert next(loader).count == 8


@pytest.mark.parametrize('flag', [True, np.True_, np.array(True), 1])
def test_a_flag_may_be_numpy_s(data, options, flag):
    assert (first(data, options, in_order=flag) ==
            first(data, options, in_order=True)).all()


def targets_of(data, options, targets):
    """Return the targets in the first batch, and its examples."""
    with refrain.Loader(data, targets=targets, **options) as loader:
        batch = next(iter(loader))
        return batch.targets, batch.substitutes.copy()


@pytest.mark.parametrize('make', [
    list, tuple, np.array, lambda values: np.array(values, np.float32),
    lambda values: pytest.importorskip('torch').tensor(values)])
def test_targets_may_be_a_list_an_array_or_a_tensor(data, options, make):
    got, examples = targets_of(data, options, make(list(range(0, 900, 3))))
    assert isinstance(got, np.ndarray) and (got == examples * 3).all()
    got, examples = targets_of(data, options, make(
        [[i, i + 0.5] for i in range(IMAGES)]))
    assert got.shape == (16, 2) and (got[:, 0] == examples).all()


@pytest.mark.parametrize('count', [0, 1, IMAGES - 1, IMAGES + 1])
def test_each_example_must_have_a_target(data, options, count):
    with pytest.raises(refrain.ConfigError, match='targets has %d elements: '
                       'the dataset has %d examples' % (count, IMAGES)):
        refrain.Loader(data, targets=[0] * count, **options)


# Values of types that make no sense for most keywords.
ODD = [True, 1j, object(), {1: 2}, {1, 2}, [1, 2], [], np.zeros(3),
       (n for n in (1, 2)), print, [None]]
TEXTS = ['\ud800', 'a\0b', '', 'abc', b'\xff']
NUMBERS = [-1, 10**30, float('nan'), float('inf'), np.float32('nan'), 2.5]


@pytest.mark.parametrize('name', [n for n in refrain.members()
                                  if n != 'dataset'])
def test_an_error_names_its_keyword(data, options, name):
    """Every value is either accepted, or refused with the name of its
    keyword."""
    options.update(epochs=1, open_timeout_ms=60000)
    if name.startswith('share'):
        options.update(share='values')
    if name in ('echo_log', 'echo_max'):
        options.update(echo='auto', window=1024)
    refused = 0
    for value in ODD + TEXTS + NUMBERS:
        try:
            refrain.Loader(data, **{**options, name: value}).close()
        except (TypeError, refrain.Error) as e:
            assert re.search(r'\b%s\b' % name, str(e)), (value, e)
            refused += 1
    assert refused >= 5


@pytest.mark.parametrize('name,values', [
    ('dataset', [None, 3, ['a.jpg', 7], 'a\0b', '\ud800']),
    ('decode', [3, 'f', b'']), ('augment_fn', [3, 'f', b'']),
    ('targets', [3, 'abc', {0: 1}, {1, 2}, [[1], [1, 2]], np.array(3)]),
    ('cpus', [3, '0', b'0', [], [-1], [1 << 40], ['0'], [0.5], {0: 1}, [4095],
              np.zeros(1)]),
    ('state', [3, 'abc', [], {}, {'refrain': 1}, np.zeros(3),
               {'refrain': 1, 'state': 10**9}, {'refrain': 2, 'state': b''}]),
    ('timeout', [-1, float('nan'), 'soon', [], object(), np.zeros(2)])])
def test_an_error_names_a_keyword_of_python_s_own(data, options, name, values):
    options.update(dataset=data)
    for value in values:
        with pytest.raises((TypeError, refrain.ConfigError,
                            refrain.StateError), match=r'\b%s\b' % name):
            refrain.Loader(**{**options, name: value})


def test_a_path_may_be_of_any_type(data, options):
    for path in data, str(data), str(data).encode(), pathlib.PurePath(data):
        refrain.Loader(path, **options).close()


# -- Exceptions that are not refrain.Error ------------------------------------

def other_errors(data, options):
    """Return (exception, call that raises it), as in the table of
    doc/python.md."""
    loader = refrain.Loader(data, epochs=1, **options)
    batch = next(iter(loader))
    view = memoryview(batch)
    released = next(loader)
    released.release()
    yield TypeError, lambda: refrain.Loader(data, bach=3)
    yield TypeError, lambda: refrain.Loader(data)
    yield TypeError, lambda: refrain.Loader(data, echo=2, **options)
    yield TypeError, lambda: refrain.Loader(data, **{**options, 'seed': []})
    yield TypeError, lambda: pickle.dumps(loader)
    yield ValueError, lambda: loader.set_epoch(1)
    yield ValueError, lambda: released.data
    yield ValueError, lambda: batch.view('nothing')
    yield IndexError, lambda: loader.path(IMAGES)
    yield BufferError, batch.release
    yield RuntimeError, lambda: ([None for _ in loader], iter(loader))
    view.release()
    loader.close()


def documented():
    """Return the exceptions in the table below 'Other exceptions'."""
    text = (TREE / 'doc/python.md').read_text()
    table = text.partition('**Other exceptions.**')[2].partition('\n\n**')[0]
    return set(re.findall(r'^\| `(\w+)` \|', table, re.M))


def test_the_other_exceptions_are_those_of_the_manual(data, options):
    raised = {ImportError}     # this one has its own test below
    for error, call in other_errors(data, options):
        with pytest.raises(error) as e:
            call()
        assert not isinstance(e.value, refrain.Error)
        raised.add(error)
    assert {error.__name__ for error in raised} == documented()


def test_an_import_without_the_library_says_what_to_do():
    text = ('import sys; sys.modules["refrain._refrain"] = None\n'
            'try:\n    import refrain\n'
            'except ImportError as e:\n    print(e)\n')
    said = subprocess.run([sys.executable, '-c', text], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    assert 'make install' in said
