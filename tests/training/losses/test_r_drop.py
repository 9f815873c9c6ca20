"""R-Drop adds the divergence between two passes and its gradient."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from batches import LENGTHS, batch, datasets

from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses import projected as projection
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.losses.projected import projected_cross_entropy
from keras_transformer.training.losses.r_drop import RDrop, disagreement

N, D, V = 11, 5, 13  # N is the number of positions in each of two passes


def example():
    random = np.random.default_rng(0)
    weights = random.uniform(0, 1, N) * (random.uniform(0, 1, N) > 0.3)
    labels = random.integers(0, V, N)
    hidden, table = random.normal(size=(2 * N, D)), random.normal(size=(V, D))
    return hidden, table, np.tile(labels, 2), np.tile(weights, 2)


def reference(hidden, table, labels, weights, smoothing, r_drop):
    """The definition, one position at a time: loss and gradients in float64 by autodiff."""
    hidden, table = tf.constant(hidden, "float64"), tf.constant(table, "float64")
    with tf.GradientTape() as tape:
        tape.watch([hidden, table])
        log_p = tf.nn.log_softmax(tf.einsum("nd,vd->nv", hidden, table))
        loss = 0.0
        for n in range(N):
            one, two = log_p[n], log_p[N + n]
            apart = tf.reduce_sum(tf.exp(one) * (one - two)) / 2  # KL(p_1 || p_2) / 2
            apart += tf.reduce_sum(tf.exp(two) * (two - one)) / 2
            for row in (one, two):
                right = (1 - smoothing) * row[labels[n]] + smoothing * tf.reduce_mean(row)
                loss += weights[n] * (r_drop / 2 * apart - right)
    return loss, *tape.gradient(loss, [hidden, table])


def measure(hidden, table, labels, weights, smoothing, r_drop, **options):
    def loss_and_gradients(hidden, table):
        with tf.GradientTape() as tape:
            tape.watch([hidden, table])
            loss = projected_cross_entropy(
                hidden,
                table,
                tf.constant(labels),
                tf.constant(weights, "float32"),
                smoothing,
                RDrop(r_drop),
            )
        return loss, *tape.gradient(loss, [hidden, table])

    function = tf.function(loss_and_gradients, **options)
    return function(tf.constant(hidden, "float32"), tf.constant(table, "float32"))


@pytest.mark.slow
@pytest.mark.parametrize("rows, jit_compile", [(4, False), (10, False), (100, False)])
def test_loss_and_gradients_follow_the_definition(monkeypatch, rows, jit_compile):
    monkeypatch.setattr(projection, "CHUNK_BYTES", rows * 2 * 4 * V)
    outputs = measure(*example(), 0.1, 5.0, jit_compile=jit_compile)
    expected = reference(*example(), 0.1, 5.0)
    np.testing.assert_allclose(outputs[0], expected[0], rtol=1e-5)
    for ours, theirs in zip(outputs[1:], expected[1:], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_two_equal_passes_add_nothing():
    logits = np.random.default_rng(0).normal(size=(N, V)).astype("float32")
    logits = np.concatenate([logits, logits + 3])  # the same predictions
    apart, by_logits = disagreement(tf.nn.softmax(logits), tf.nn.log_softmax(logits))
    np.testing.assert_allclose(apart, 0, atol=1e-6)
    np.testing.assert_allclose(by_logits, 0, atol=1e-6)


def test_contradictory_predictions_do_not_overflow():
    logits = tf.constant([[300.0, 0.0, -300.0], [-300.0, 0.0, 300.0]])
    apart, by_logits = disagreement(tf.nn.softmax(logits), tf.nn.log_softmax(logits))
    np.testing.assert_allclose(apart, [600, 600])
    assert np.isfinite(by_logits).all()


def trained(model, r_drop, batches, **options):
    learner = Learner(model, consistency=RDrop(r_drop) if r_drop else None)
    learner.compile(keras.optimizers.SGD(0.5), LabelSmoothedCrossEntropy(0.1), **options)
    return learner.fit(batches, verbose=0, shuffle=False).history


@pytest.mark.long
@pytest.mark.slow
def test_without_dropout_an_update_is_the_same(small_model, jit_compile=True):
    with_it, without = (small_model(num_layers=1, num_decoder_layers=1) for _ in range(2))
    data = tf.data.Dataset.from_tensors(batch(LENGTHS))  # of known shape, as XLA needs it
    figures = trained(with_it, 5.0, data, jit_compile=jit_compile)
    expected = trained(without, 0.0, data)
    np.testing.assert_allclose(figures["loss"], expected["loss"], rtol=1e-5)
    assert figures["tokens"] == expected["tokens"]  # counted once
    for ours, theirs in zip(with_it.weights, without.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-5)


@pytest.mark.long
@pytest.mark.slow
def test_it_makes_passes_agree(small_model):
    """After the same number of updates, two passes with dropout are closer to each other."""
    inputs, labels = batch(LENGTHS)
    apart = []
    for r_drop in (0.0, 5.0):
        model = small_model(num_layers=1, num_decoder_layers=1, dropout=0.3)
        learner = Learner(model, consistency=RDrop(r_drop) if r_drop else None)
        learner.compile(keras.optimizers.Adam(0.003), LabelSmoothedCrossEntropy(0.1))
        learner.fit(datasets(*[(inputs, labels)] * 50), verbose=0, shuffle=False)
        many = {name: np.tile(tokens, (20, 1)) for name, tokens in inputs.items()}
        passes = tf.concat([model(many, training=True) for _ in range(2)], axis=0)
        apart.append(np.mean(disagreement(tf.nn.softmax(passes), tf.nn.log_softmax(passes))[0]))
    assert apart[1] < 0.5 * apart[0]
