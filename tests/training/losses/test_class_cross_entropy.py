"""The smoothed cross-entropy of classes against a loop over classes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy

B, C = 7, 5


def example(scale=1.0):
    rng = np.random.default_rng(0)
    return rng.integers(0, C, B), scale * rng.normal(size=(B, C))


def reference(labels, logits, smoothing):
    """Returns losses [B] and gradients of their mean [B, C], class by class, in float64."""
    losses, gradient = np.zeros(B), np.zeros((B, C))
    for b in range(B):
        p = np.exp(logits[b] - logits[b].max())
        p /= p.sum()
        for c in range(C):
            target = smoothing / C + (1 - smoothing if c == labels[b] else 0)
            losses[b] -= target * np.log(p[c])
            gradient[b, c] = (p[c] - target) / B
    return losses, gradient


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_loss_and_gradient_follow_the_formula(smoothing):
    labels, logits = example(scale=3)
    variable = tf.Variable(logits, dtype="float32")
    with tf.GradientTape() as tape:
        loss = ClassCrossEntropy(smoothing)(labels, variable)
    losses, gradient = reference(labels, logits, smoothing)
    np.testing.assert_allclose(loss, losses.mean(), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(loss, variable), gradient, rtol=0, atol=1e-6)
    unreduced = ClassCrossEntropy(smoothing, reduction=None)(labels, variable)
    np.testing.assert_allclose(unreduced, losses, rtol=1e-5)


def test_without_smoothing_it_equals_keras():
    labels, logits = example()
    plain = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    weights = np.random.default_rng(1).random(B).astype("float32")
    for options in ({}, {"sample_weight": weights}):
        ours, theirs = (loss(labels, logits, **options) for loss in (ClassCrossEntropy(), plain))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_large_logits_stay_finite():
    labels, logits = example(scale=1e4)
    assert np.isfinite(float(ClassCrossEntropy(0.1)(labels, logits.astype("float32"))))


def test_its_configuration_contains_the_smoothing():
    loss = keras.losses.deserialize(keras.losses.serialize(ClassCrossEntropy(0.3)))
    assert type(loss) is ClassCrossEntropy and loss.label_smoothing == 0.3
    labels, logits = example()
    np.testing.assert_array_equal(loss(labels, logits), ClassCrossEntropy(0.3)(labels, logits))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_a_wrong_smoothing_is_refused(smoothing):
    message = f"`label_smoothing` must be at least 0 and below 1. Received: .*={smoothing}"
    with pytest.raises(ValueError, match=message):
        ClassCrossEntropy(smoothing)
