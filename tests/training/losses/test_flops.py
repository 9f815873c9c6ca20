"""The FLOPS regulariser and its growth, once more in float64 with loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.training.losses.contrastive import ContrastiveLoss
from keras_transformer.training.losses.flops import SparseContrastiveLoss, flops

WEIGHTS = np.random.default_rng(0).random((10, 7)).astype("float32")  # five pairs
LABELS = tf.constant(np.arange(10).reshape(5, 2))


def flops_in_loops(weights):
    return sum((sum(row[v] for row in weights) / len(weights)) ** 2 for v in range(7))


def test_flops_are_the_squares_of_mean_weights():
    assert float(flops(tf.constant(WEIGHTS))) == pytest.approx(flops_in_loops(WEIGHTS))


@pytest.mark.parametrize(("update", "share"), [(0, 0.0), (1, 1 / 16), (3, 9 / 16), (4, 1), (9, 1)])
def test_the_factors_grow_with_the_square_of_the_update(update, share):
    loss = SparseContrastiveLoss(0.3, 0.7, 4, scale=2.0)
    loss.follow(tf.Variable(update, dtype="int64"))
    expected = ContrastiveLoss(2.0).call(LABELS, tf.constant(WEIGHTS)).numpy()
    added = 0.3 * flops_in_loops(WEIGHTS[:5]) + 0.7 * flops_in_loops(WEIGHTS[5:])
    losses = loss.call(LABELS, tf.constant(WEIGHTS))
    np.testing.assert_allclose(losses, expected + share * added, rtol=1e-5)
