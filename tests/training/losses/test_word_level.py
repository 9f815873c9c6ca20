"""Cross-entropy with a teacher's tokens: equal to the divergence of distributions, in float64."""

import numpy as np
import pytest
import tensorflow as tf
from marks import slow

from keras_transformer.training.losses import projected as projection
from keras_transformer.training.losses.projected import projected_cross_entropy
from keras_transformer.training.losses.r_drop import RDrop
from keras_transformer.training.losses.sim_cut import SimCut
from keras_transformer.training.losses.teacher import teacher_shares

N, D, V = 22, 5, 13


def example():
    random = np.random.default_rng(2)
    teacher = np.exp(3 * random.normal(size=(N, V)))
    teacher /= teacher.sum(axis=1, keepdims=True)
    weights = random.uniform(0, 1, N // 2) * (random.uniform(0, 1, N // 2) > 0.3)
    weights = np.tile(weights, 2)  # both passes of R-Drop have the same
    hidden, table = random.normal(size=(N, D)), random.normal(size=(V, D))
    return hidden, table, random.integers(0, V, N), weights, random.normal(size=V), teacher


def most_probable(teacher, k):
    tokens = np.argsort(-teacher, axis=1)[:, :k]
    return tokens.astype("int32"), np.take_along_axis(teacher, tokens, 1)


def divergence(z, targets):
    """The cross-entropy as a divergence plus the entropy of the targets, and its gradient."""
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    logs = np.log(np.where(targets > 0, targets, 1))
    kl = (targets * (logs - np.log(p))).sum(axis=1)
    return kl - (targets * logs).sum(axis=1), p - targets


def targets_of(labels, teacher, smoothing, weight):
    """The whole target distribution, one position at a time."""
    targets = np.zeros((N, V))
    for n in range(N):
        share = weight if teacher[n].sum() else 0.0
        targets[n] = (1 - share) * smoothing / V
        targets[n, labels[n]] += (1 - share) * (1 - smoothing)
        targets[n] += share * teacher[n] / max(teacher[n].sum(), 1e-30)
    return targets


def measure(smoothing, weight, tokens, probabilities, consistency=None, jit_compile=False):
    hidden, table, labels, weights, bias, _ = example()
    tensors = [tf.constant(x, "float32") for x in (hidden, table, bias)]

    def loss_and_gradients(hidden, table, bias):
        with tf.GradientTape() as tape:
            tape.watch([hidden, table, bias])
            shares = teacher_shares(tf.constant(probabilities, "float32"), weight)
            loss = projected_cross_entropy(
                hidden,
                table,
                tf.constant(labels),
                tf.constant(weights, "float32"),
                smoothing,
                consistency,
                bias,
                (tf.constant(tokens), shares),
            )
        return loss, tape.gradient(loss, [hidden, table, bias])

    return tf.function(loss_and_gradients, jit_compile=jit_compile)(*tensors)


@pytest.mark.parametrize("weight", [0.3, slow(1.0)])
@pytest.mark.parametrize(("k", "rows", "smoothing"), [(V, 6, 0.0), (V, 22, 0.1), (3, 6, 0.1)])
def test_it_is_the_divergence_from_the_mixture(monkeypatch, k, rows, smoothing, weight):
    """With K = V from the teacher's whole distribution; some positions have no teacher."""
    monkeypatch.setattr(projection, "CHUNK_BYTES", rows * 4 * V)
    hidden, table, labels, weights, bias, teacher = example()
    tokens, probabilities = most_probable(teacher, k)
    probabilities[4:7] = 0.0
    loss, gradients = measure(smoothing, weight, tokens, probabilities)
    known = np.zeros_like(teacher)
    np.put_along_axis(known, tokens, probabilities, 1)
    targets = targets_of(labels, known, smoothing, weight)
    losses, by_z = divergence(hidden @ table.T + bias, targets)
    np.testing.assert_allclose(targets.sum(axis=1), 1)
    np.testing.assert_allclose(loss, weights @ losses, rtol=1e-5)
    by_z *= weights[:, None]
    expected = by_z @ table, by_z.T @ hidden, by_z.sum(axis=0)
    for gradient, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-5)


@pytest.mark.parametrize("consistency", [RDrop(0.7), SimCut(0.7)], ids=["R-Drop", "SimCut"])
@pytest.mark.parametrize("jit_compile", [False, slow(True)])
def test_gradients_are_those_of_automatic_differentiation(monkeypatch, consistency, jit_compile):
    """With two passes, which are the halves of the rows; in float64."""
    monkeypatch.setattr(projection, "CHUNK_BYTES", 6 * 4 * V)
    hidden, table, labels, weights, bias, teacher = example()
    tokens, probabilities = most_probable(teacher, 4)
    loss, gradients = measure(0.1, 0.4, tokens, probabilities, consistency, jit_compile)
    variables = [tf.constant(x) for x in (hidden, table, bias)]
    known = np.zeros_like(teacher)
    np.put_along_axis(known, tokens, probabilities, 1)
    with tf.GradientTape() as tape:
        tape.watch(variables)
        log_p = tf.nn.log_softmax(variables[0] @ tf.transpose(variables[1]) + variables[2])
        losses = -tf.reduce_sum(targets_of(labels, known, 0.1, 0.4) * log_p, axis=1)
        first, second = tf.split(log_p, 2)
        if isinstance(consistency, RDrop):
            apart = tf.reduce_sum((tf.exp(first) - tf.exp(second)) * (first - second), axis=1) / 2
            losses += 0.7 / 2 * tf.concat([apart, apart], axis=0)
        else:  # the cross-entropy of the second pass does not count
            apart = tf.reduce_sum(tf.exp(first) * (first - second), axis=1)
            losses = tf.concat([tf.split(losses, 2)[0] + 0.7 * apart, 0 * apart], axis=0)
        expected = tf.reduce_sum(weights * losses)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    for gradient, wanted in zip(gradients, tape.gradient(expected, variables), strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-5)


def test_the_shares_of_a_teacher_are_renormalised():
    shares = teacher_shares(tf.constant([[0.3, 0.1], [0.0, 0.0]]), 0.8)
    np.testing.assert_allclose(shares, [[0.6, 0.2], [0.0, 0.0]], rtol=1e-6)
