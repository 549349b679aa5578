# SPDX-License-Identifier: MIT
"""Tests of epochs that differ from the dataset, of subsets, and of mixes."""

import numpy
import pytest

import refrain

from conftest import CLASSES, IMAGES


def fresh(loader):
    """Return the indices of the fresh examples of an epoch, in order."""
    return numpy.concatenate(
        [batch.indices[batch.echoes == 0] for batch in loader])


@pytest.mark.parametrize('examples', [70, 300, 450])
def test_an_epoch_has_the_number_of_examples_that_was_asked_for(
        data, options, examples):
    epochs = 900 // examples + 1
    options['last'] = 'short'
    with refrain.Loader(data, epochs=epochs, epoch_examples=examples,
                        **options) as loader:
        order = [batch.indices.copy() for _ in range(epochs)
                 for batch in loader]
        assert loader.stats()['epochs'] == epochs
    order = numpy.concatenate(order)
    assert len(order) == epochs * examples
    for passed in order[:900].reshape(3, IMAGES):
        assert len(set(passed)) == IMAGES


def test_a_subset_is_the_same_in_each_epoch_and_after_a_resume(data, options):
    options.update(epochs=3, subset=100, subset_seed=4, last='short')
    with refrain.Loader(data, **options) as loader:
        whole = numpy.concatenate([fresh(loader) for _ in range(3)])
    # a batch may contain the end of an epoch and the beginning of the next
    passes = {frozenset(served) for served in whole.reshape(3, 100)}
    assert len(passes) == 1 and len(passes.pop()) == 100
    with refrain.Loader(data, **options) as loader:
        first = fresh(loader)
        state = loader.state_dict()
    with refrain.Loader(data, state=state, **options) as loader:
        rest = [fresh(loader) for _ in range(2)]
    assert numpy.array_equal(numpy.concatenate([first, *rest]), whole)
    options['subset'] = 101
    with pytest.raises(refrain.StateError, match='subset differs'):
        refrain.Loader(data, state=state, **options)


def test_a_mix_has_exact_proportions(data, options):
    with refrain.Loader(data, epochs=2, epoch_examples=200, last='short',
                        mix='class_000=3 class_002=1; 1: classes=1',
                        **options) as loader:
        labels = [numpy.concatenate([batch.labels.copy() for batch in loader])
                  for _ in range(2)]
    labels = numpy.concatenate(labels)
    for block in labels[:200].reshape(50, 4):
        assert sorted(block) == [0, 0, 0, 2]
    for block in labels[200:398].reshape(66, CLASSES):
        assert sorted(block) == list(range(CLASSES))


@pytest.mark.parametrize('bad, match', [
    ({'mix': 'dogs=1'}, 'no example belongs to'),
    ({'mix': 'class_000'}, 'NAME=WEIGHT'),
    ({'subset': IMAGES + 1}, 'the dataset has 300'),
    ({'subset': 5, 'mix': 'classes=1'}, 'exclude each other'),
])
def test_what_cannot_be_served_is_refused(data, options, bad, match):
    with pytest.raises(refrain.ConfigError, match=match):
        refrain.Loader(data, epochs=1, **bad, **options)
