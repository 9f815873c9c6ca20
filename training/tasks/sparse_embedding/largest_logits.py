"""Largest logit of each token of the vocabulary in a text, without all logits in memory."""

import tensorflow as tf

from keras_transformer.tensors import Tensor


def largest_logits(hidden, table, padding_mask, bias=None) -> Tensor:
    """Computes `max(0, max_s (hidden_bs . table_v + bias_v))` over the positions s of each text b.

    The logits of one text are in memory at a time, `[S, V]` instead of `[B, S, V]`. The gradient
    of a maximum belongs to one position, and where the result is 0 there is none: a few products of
    vectors take the place of two products of matrices. If several positions have the same largest
    logit, the gradient is that of the first one.

    Args:
        hidden: Inputs of the output weights, floating `[B, S, E]`.
        table: Output matrix, `[V, E]`, in the dtype in which the products are computed.
        padding_mask: Boolean `[B, 1, S]`, `True` for tokens that are not padding. `None`: no
            padding.
        bias: Float32 `[V]`. `None`: no bias.

    Returns:
        float32 `[B, V]`.
    """

    @tf.custom_gradient
    def largest(hidden, table, *bias):
        results = tf.nn.relu(_highest(hidden, table, bias, padding_mask))  # [B, V]

        def gradient(upstream):
            slopes = tf.where(results > 0, upstream, 0.0)  # [B, V]
            by_hidden, by_table = _gradients(hidden, table, padding_mask, slopes)
            by_bias = [tf.reduce_sum(slopes, axis=0) for _ in bias]
            return [tf.cast(by_hidden, hidden.dtype), tf.cast(by_table, table.dtype), *by_bias]

        return results, gradient

    return largest(hidden, table, *([] if bias is None else [bias]))


def _highest(hidden, table, bias, padding_mask):
    """Returns the largest logits, float32 `[B, V]`; minus infinity for texts of padding."""

    def add_text(text, highest):
        real = _real(padding_mask, text, tf.shape(hidden)[1])  # [R]
        logits = _logits(tf.gather(hidden[text], real), table)  # [R, V]
        return text + 1, highest.write(text, tf.reduce_max(logits, axis=0))

    count = tf.shape(hidden)[0]
    highest = tf.TensorArray(tf.float32, count, element_shape=table.shape[:1])
    _, highest = tf.while_loop(
        lambda text, _: text < count, add_text, (0, highest), parallel_iterations=1
    )
    return highest.stack() + bias[0] if bias else highest.stack()


def _gradients(hidden, table, padding_mask, slopes):
    """Returns the gradients of `hidden` and `table`, float32, for slopes `[B, V]`."""
    count, length = tf.shape(hidden)[0], tf.shape(hidden)[1]

    def add_text(text, by_hidden, by_table):
        tokens = tf.where(tf.not_equal(slopes[text], 0))  # [N, 1]
        rows = tf.gather(table, tokens[:, 0])  # [N, E]
        slope = tf.gather(slopes[text], tokens)  # [N, 1]
        real = _real(padding_mask, text, length)  # [R]
        logits = _logits(tf.gather(hidden[text], real), rows)  # [R, N]
        logits = tf.pad(logits, [[0, 1], [0, 0]], constant_values=logits.dtype.min)  # [R + 1, N]
        places = tf.gather(tf.pad(real, [[0, 1]]), tf.argmax(logits, axis=0))  # [N]; R may be 0
        by_x = slope * tf.cast(rows, tf.float32)  # [N, E]
        by_rows = slope * tf.cast(tf.gather(hidden[text], places), tf.float32)  # [N, E]
        by_hidden = by_hidden.write(text, tf.math.unsorted_segment_sum(by_x, places, length))
        return text + 1, by_hidden, tf.tensor_scatter_nd_add(by_table, tokens, by_rows)

    by_hidden = tf.TensorArray(tf.float32, count, element_shape=hidden.shape[1:])
    start = (0, by_hidden, tf.zeros(table.shape))
    _, by_hidden, by_table = tf.while_loop(
        lambda text, *_: text < count, add_text, start, parallel_iterations=1
    )
    return by_hidden.stack(), by_table


def _real(padding_mask, text, length):
    """Returns the positions of a text that are not padding, `[R]`."""
    if padding_mask is None:
        return tf.range(length)
    return tf.cast(tf.where(padding_mask[text, 0])[:, 0], tf.int32)


def _logits(x, table):
    """Returns the logits of positions `[R, E]`, float32 `[R, V]`."""
    return tf.cast(tf.matmul(tf.cast(x, table.dtype), table, transpose_b=True), tf.float32)
