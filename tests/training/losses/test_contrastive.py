"""The contrastive loss, once more in float64 with loops over the pairs of a batch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.training.losses.contrastive import ContrastiveLoss

SCALE = 3.0
VECTORS = np.random.default_rng(0).normal(size=(10, 7)).astype("float32")  # five pairs
DIFFERENT = np.arange(10).reshape(5, 2)
REPEATED = np.array([[1, 2], [3, 4], [1, 5], [6, 4], [7, 8]])  # texts 0 and 2, partners 1 and 3


def one_side(first, second, labels):
    """The loss of each pair: its partner against the texts of the other pairs."""
    losses = []
    for i in range(len(first)):
        others = [
            j for j in range(len(second)) if j == i or not any(labels[i] == labels[j])
        ]  # fmt: skip
        scores = np.array([SCALE * first[i] @ second[j] for j in others], "float64")
        losses.append(-np.log(np.exp(scores[others.index(i)]) / np.exp(scores).sum()))
    return np.array(losses)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("labels", [DIFFERENT, REPEATED], ids=["different", "repeated"])
def test_the_loss_follows_its_formula(labels, symmetric):
    first, second = VECTORS[:5].astype("float64"), VECTORS[5:].astype("float64")
    expected = one_side(first, second, labels)
    if symmetric:
        expected = (expected + one_side(second, first, labels)) / 2
    losses = ContrastiveLoss(SCALE, symmetric).call(tf.constant(labels), tf.constant(VECTORS))
    np.testing.assert_allclose(losses, expected, atol=1e-5)


def test_a_pair_alone_has_no_loss():
    losses = ContrastiveLoss().call(tf.constant([[1, 2]]), tf.constant(VECTORS[:2]))
    np.testing.assert_allclose(losses, [0.0], atol=1e-6)
