"""Largest logits of the texts of a batch, and the training pass of sparse vectors with them."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines import SIZES, tokenizer
from support import randomise

from keras_transformer.models import SparseEmbedderConfig, SparseTextEmbedder
from keras_transformer.tasks import TASKS
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.tasks import training_class
from keras_transformer.training.tasks.sparse_embedding import largest_logits as module
from keras_transformer.training.tasks.sparse_embedding.largest_logits import largest_logits

B, S, E, V = 11, 5, 3, 17
RNG = np.random.default_rng(0)
HIDDEN, TABLE = RNG.normal(size=(B, S, E)), RNG.normal(size=(V, E))
BIAS, SLOPES = RNG.normal(size=V), RNG.normal(size=(B, V))
LENGTHS = [5, 1, 2, 3, 4, 5, 0, 2, 3, 4, 5]


def in_loops(hidden, table, bias, lengths, slopes):
    """Results and gradients, one token of one text at a time, in float64."""
    results = np.zeros((B, V))
    gradients = [np.zeros_like(x) for x in (hidden, table, bias)]
    for b, v in np.ndindex(B, V):
        logits = [hidden[b, s] @ table[v] + bias[v] for s in range(lengths[b])]
        if max(logits, default=0) > 0:
            s = int(np.argmax(logits))
            results[b, v] = logits[s]
            gradients[0][b, s] += slopes[b, v] * table[v]
            gradients[1][v] += slopes[b, v] * hidden[b, s]
            gradients[2][v] += slopes[b, v]
    return results, gradients


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("compiled", "dense"), [(True, 50), (True, 0), (False, 10**6)])
def test_results_and_gradients(has_bias, masked, compiled, dense, monkeypatch):
    monkeypatch.setattr(module, "DENSE", dense)
    monkeypatch.setattr(module, "CHUNK_BYTES", 4 * 3 * S * V)  # three texts at a time
    lengths = LENGTHS if masked else B * [S]
    given = [tf.Variable(x, dtype="float32") for x in (HIDDEN, TABLE, BIAS)]
    mask = tf.sequence_mask(lengths, S)[:, None] if masked else None

    def compute():
        with tf.GradientTape() as tape:
            results = largest_logits(*given[:2], mask, given[2] if has_bias else None)
            loss = tf.reduce_sum(results * tf.cast(SLOPES, "float32"))
        return results, tape.gradient(loss, given if has_bias else given[:2])

    results, gradients = (tf.function(compute) if compiled else compute)()
    bias = BIAS if has_bias else np.zeros(V)
    expected, slopes = in_loops(HIDDEN, TABLE, bias, lengths, SLOPES)
    np.testing.assert_allclose(results, expected, rtol=0, atol=1e-5)
    assert (expected > 0).any() and (expected == 0).any()
    for ours, theirs in zip(gradients, slopes, strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "policy", "atol"),
    [
        ({}, None, 1e-6),
        ({"output_bias": False}, None, 1e-6),
        ({}, "mixed_bfloat16", 2**-6),  # numbers of 8 bits; the model rounds before it adds
    ],
)
def test_a_training_has_the_gradients_of_the_model(options, policy, atol):
    options = {"saturation": "double_log", "dropout": 0.0, **options}
    config = SparseEmbedderConfig(vocab_size=30, **{**SIZES, **options})
    model = randomise(SparseTextEmbedder(config, dtype=policy))
    training = training_class(TASKS["sparse_embedding"])(tokenizer(), config)
    ids = tf.constant([[7, 8, 9, 3], [5, 3, 0, 0], [12, 7, 3, 0], [6, 6, 3, 0]])
    labels = tf.constant([[1, 3], [2, 4]])
    sums = {}
    for forward in (None, training.forward(model)):
        learner = Learner(model, training.weigh, forward=forward)
        learner.compile("adam", training.loss(SETTINGS), training.metrics())
        with tf.GradientTape() as tape:
            loss = learner.objective.sum(ids, labels, 2.0, static=False)
        sums[forward is None] = loss, tape.gradient(loss, model.trainable_variables)
    (plain, slopes), (ours, gradients) = sums[True], sums[False]
    np.testing.assert_allclose(ours, plain, rtol=0, atol=atol)
    for own, theirs in zip(gradients, slopes, strict=True):
        largest = np.abs(tf.convert_to_tensor(theirs)).max()
        np.testing.assert_allclose(
            tf.convert_to_tensor(own), tf.convert_to_tensor(theirs), rtol=0, atol=atol * largest
        )
        assert largest > 0


class SETTINGS:
    updates = 90


def test_sums_over_positions_need_all_logits():
    config = SparseEmbedderConfig(vocab_size=30, **SIZES, pooling="sum")
    training = training_class(TASKS["sparse_embedding"])(tokenizer(), config)
    assert training.forward(SparseTextEmbedder(config)) is None
