"""A stream of epochs resumes anywhere with the next batch."""

import numpy as np
import pytest
import tensorflow as tf
from corpora import corpus_of_numbers

from keras_transformer.training.data.stream import endless_batches

PAIRS = 23
BATCH_TOKENS = 12


@pytest.fixture(scope="module")
def corpus():
    """Pairs of 2 to 6 tokens, all different."""
    rng = np.random.default_rng(0)
    rows = [[10 + number] * rng.integers(1, 6) + [3] for number in range(PAIRS)]
    return corpus_of_numbers(rows)


def take(corpus, count, **options):
    dataset = endless_batches(corpus.epochs(BATCH_TOKENS, seed=5), **options)
    return [labels.numpy().tolist() for _, labels in dataset.take(count)]


def test_every_epoch_contains_every_pair_once_in_its_own_order(corpus):
    steps = corpus.steps(BATCH_TOKENS)
    batches = take(corpus, 3 * steps)
    epochs = [batches[start : start + steps] for start in range(0, 3 * steps, steps)]
    for epoch in epochs:
        firsts = sorted(row[0] for batch in epoch for row in batch)
        assert firsts == list(range(10, 10 + PAIRS))
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]


@pytest.mark.long
@pytest.mark.slow
def test_it_resumes_at_any_batch(corpus):
    steps = corpus.steps(BATCH_TOKENS)
    assert steps > 4
    whole = take(corpus, 3 * steps)
    for skip in (0, 1, steps - 1, steps, steps + 1, 2 * steps, 2 * steps + 3):
        assert take(corpus, 4, skip=skip) == whole[skip : skip + 4] or skip > 3 * steps - 4


@pytest.mark.slow
def test_another_seed_gives_another_order(corpus):
    one = endless_batches(corpus.epochs(BATCH_TOKENS, seed=5)).take(3)
    two = endless_batches(corpus.epochs(BATCH_TOKENS, seed=6)).take(3)
    assert [y.numpy().tolist() for _, y in one] != [y.numpy().tolist() for _, y in two]


def test_batch_shapes_are_open_so_that_one_graph_serves_all(corpus):
    inputs, labels = endless_batches(corpus.epochs(BATCH_TOKENS)).element_spec
    assert labels == tf.TensorSpec([None, None], tf.int32)
    assert inputs == {"source": labels, "target": labels}


@pytest.mark.long
@pytest.mark.slow
def test_updates_of_several_batches_use_the_same_batches(corpus):
    whole = take(corpus, 12)
    for skip in (0, 1, 2):
        updates = endless_batches(corpus.epochs(BATCH_TOKENS, seed=5), skip=skip, accumulate=3)
        batches = [labels.numpy().tolist() for update in updates.take(2) for _, labels in update]
        assert batches == whole[3 * skip : 3 * skip + 6]
