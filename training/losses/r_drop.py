"""R-Drop: a loss on the difference between the predictions of two passes with dropout."""

import dataclasses

import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.consistency import Consistency


@dataclasses.dataclass(frozen=True)
class RDrop(Consistency):
    """R-Drop: the loss is the mean of two passes, plus their weighted `disagreement`.

    Args:
        weight: Weight of the disagreement; 5 in R-Drop's paper, for translation.
    """

    def added(self, loss, by_z, p, log_p) -> tuple[Tensor, Tensor]:
        """Adds `weight / 2` times the `disagreement` to each of the two rows of a position."""
        apart, apart_by_z = disagreement(p, log_p)
        return loss + self.weight / 2 * apart, by_z + self.weight * apart_by_z


def disagreement(p, log_p) -> tuple[Tensor, Tensor]:
    """Computes the mean of the two KL divergences between the predictions of two passes.

    `(KL(p_1 || p_2) + KL(p_2 || p_1)) / 2` is half the sum of `(p_1 - p_2) * (log p_1 - log p_2)`.
    Its gradient with respect to the logits of `p_1` has a closed form:

        (p_1 * (d - E[d]) + p_1 - p_2) / 2    with d = log p_1 - log p_2, E under p_1

    Args:
        p: Probabilities, float32 `[2 * R, V]`: rows r and R + r are the same position.
        log_p: Logarithms of `p`.

    Returns:
        The disagreement of each row with its counterpart, `[2 * R]`, and its gradient with respect
        to the logits of the row, `[2 * R, V]`.

    Reference: Wu, Li et al. (2021), "R-Drop: Regularized Dropout for Neural Networks", Eq. 2. Not
        in Vaswani et al. (2017).
    """
    apart = log_p - _other(log_p)  # [2 * R, V]
    difference = p - _other(p)  # [2 * R, V]
    expected = tf.reduce_sum(p * apart, axis=-1, keepdims=True)  # [2 * R, 1]
    gradient = (p * (apart - expected) + difference) / 2
    return tf.reduce_sum(difference * apart, axis=-1) / 2, gradient


def _other(x):
    """Returns the counterpart of every row, in the other pass."""
    return tf.concat(tf.split(x, 2)[::-1], axis=0)
