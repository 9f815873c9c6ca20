"""Contrastive loss of sparse vectors with the FLOPS regulariser, which makes them sparse."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.contrastive import ContrastiveLoss


class FollowingLoss(keras.losses.Loss):
    """Base class of losses that depend on the number of updates so far; see `Learner.compile`."""

    updates: Any = None

    def follow(self, updates) -> None:
        """Takes the variable that counts the updates, such as `optimizer.iterations`."""
        self.updates = updates


def flops(weights) -> Tensor:
    """Returns `sum_v (mean_i w_iv)^2` of weights `[B, V]`, a scalar.

    It estimates the number of products in a search with postings: a token that few texts have
    costs little.

    Reference: Paria et al. (2020), "Minimizing FLOPs to Learn Efficient Sparse Representations",
        Eq. 4.
    """
    return tf.reduce_sum(tf.square(tf.reduce_mean(weights, axis=0)))


class SparseContrastiveLoss(FollowingLoss, ContrastiveLoss):
    """`ContrastiveLoss` plus `f * (query_flops * flops(a) + text_flops * flops(b))`.

    `f = min(1, n / flops_updates)^2` grows with the number n of the update, counted from 0; it is 1
    unless the loss follows the updates. Every pair of the batch has the same added value, so that
    the mean is that of the formula.

    Args:
        query_flops, text_flops: Factors for the vectors of the first and of the second texts.
        flops_updates: Number of updates over which they grow.
        **options: Arguments of `ContrastiveLoss`.

    Call arguments:
        labels, vectors: See `ContrastiveLoss`.

    Returns:
        From `call`, the loss of each pair, `[B]`.

    Reference: Formal et al. (2021), "SPLADE", section 3.2 and, for the growth of the factors, 4.1.
    """

    def __init__(self, query_flops, text_flops, flops_updates, **options):
        super().__init__(**{"name": "sparse_contrastive", **options})
        self.query_flops, self.text_flops = query_flops, text_flops
        self.flops_updates = flops_updates

    def call(self, y_true, y_pred) -> Tensor:
        first, second = tf.split(tf.cast(y_pred, tf.float32), 2)  # [B, V]
        added = self.query_flops * flops(first) + self.text_flops * flops(second)
        return super().call(y_true, y_pred) + self._share() * added  # [B]

    def _share(self):
        """Returns the share of the factors that has grown, a number from 0 to 1."""
        if self.updates is None:
            return 1.0
        done = tf.cast(self.updates, tf.float32) / self.flops_updates
        return tf.square(tf.minimum(1.0, done))
