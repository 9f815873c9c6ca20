"""R-Drop: a loss on the difference between the predictions of two passes with dropout."""

from typing import Any

import tensorflow as tf

from keras_transformer.tensors import Tensor


def twice(values) -> Any:
    """Repeats a batch, so that dropout gives two passes: `[B, ...]` becomes `[2 * B, ...]`."""
    return tf.nest.map_structure(lambda tensor: tf.concat([tensor, tensor], axis=0), values)


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
