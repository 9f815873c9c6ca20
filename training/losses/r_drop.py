"""R-Drop: two passes of the same sentences through dropout are to predict the same."""

import tensorflow as tf


def twice(values):
    """Repeats a batch, so that dropout gives two passes of it: `[B, ...]` to `[2 * B, ...]`."""
    return tf.nest.map_structure(lambda tensor: tf.concat([tensor, tensor], axis=0), values)


def disagreement(p, log_p):
    """How far two passes are apart: the mean of the two divergences between their predictions.

    `(KL(p_1 || p_2) + KL(p_2 || p_1)) / 2`, which is half the sum of `(p_1 - p_2) * (log p_1 -
    log p_2)`, for the gradient of which by the logits of `p_1` there is a closed form:

        (p_1 * (d - E[d]) + p_1 - p_2) / 2    with d = log p_1 - log p_2, E under p_1

    Args:
        p: Probabilities, float32 `[2 * R, V]`: rows r and R + r are the same position.
        log_p: Their logarithms.

    Returns:
        The disagreement of each row with its other, `[2 * R]`, and its gradient by the logits of
        that row, `[2 * R, V]`.

    Reference: Wu, Li et al. (2021), "R-Drop: Regularized Dropout for Neural Networks", Eq. 2. Not
        in the paper.
    """
    apart = log_p - _other(log_p)  # [2 * R, V]
    difference = p - _other(p)  # [2 * R, V]
    expected = tf.reduce_sum(p * apart, axis=-1, keepdims=True)  # [2 * R, 1]
    gradient = (p * (apart - expected) + difference) / 2
    return tf.reduce_sum(difference * apart, axis=-1) / 2, gradient


def _other(x):
    """Every row's counterpart in the other pass."""
    return tf.concat(tf.split(x, 2)[::-1], axis=0)
