"""Largest logit of each token of the vocabulary in a text, without all logits in memory."""

import tensorflow as tf

from keras_transformer.tensors import Tensor

# Products of vectors for a token take as long as products of matrices for so many positions.
DENSE = 150
CHUNK_BYTES = 2**27  # size of the logits that are in memory at a time for these


def largest_logits(hidden, table, padding_mask, bias=None) -> Tensor:
    """Computes `max(0, max_s (hidden_bs . table_v + bias_v))` over the positions s of each text b.

    The logits of one text are in memory at a time, `[S, V]` instead of `[B, S, V]`. The gradient
    of a maximum belongs to one position, and where the result is 0 there is none: a few products of
    vectors take the place of two products of matrices. If several positions have the same largest
    logit, the gradient is that of the first one, or the mean of theirs. As long as most results are
    above 0, as at the beginning of a training from random weights, products of matrices are faster,
    and are used.

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
    active = tf.math.count_nonzero(slopes)
    real = tf.size(hidden[..., 0]) if padding_mask is None else tf.math.count_nonzero(padding_mask)
    return tf.cond(
        DENSE * active <= table.shape[0] * tf.cast(real, tf.int64),
        lambda: _of_some_tokens(hidden, table, padding_mask, slopes),
        lambda: _of_all_tokens(hidden, table, padding_mask, slopes),
    )


def _of_some_tokens(hidden, table, padding_mask, slopes):
    """Returns the gradients by products of vectors, a text at a time."""
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


def _of_all_tokens(hidden, table, padding_mask, slopes):
    """Returns the gradients by products of matrices, for some texts at a time."""
    (count, length), (vocab_size, width) = tf.unstack(tf.shape(hidden)[:2]), table.shape
    step = tf.maximum(1, CHUNK_BYTES // (4 * vocab_size * length))  # texts

    def add_texts(first, by_hidden, by_table):
        x = tf.reshape(
            tf.cast(hidden[first : first + step], table.dtype), [-1, width]
        )  # [C * S, E]
        logits = tf.reshape(_logits(x, table), [-1, length, vocab_size])  # [C, S, V]
        if padding_mask is not None:
            real = padding_mask[first : first + step, 0, :, None]
            logits = tf.where(real, logits, logits.dtype.min)
        at_top = tf.equal(logits, tf.reduce_max(logits, axis=1, keepdims=True))  # [C, S, V]
        tops = tf.math.count_nonzero(at_top, axis=1, keepdims=True, dtype=tf.float32)  # [C, 1, V]
        slope = slopes[first : first + step, None] / tops  # [C, 1, V]
        by_logits = tf.where(at_top, slope, 0.0)  # [C, S, V]
        by_logits = tf.cast(tf.reshape(by_logits, [-1, vocab_size]), table.dtype)
        by_table += tf.cast(tf.matmul(by_logits, x, transpose_a=True), tf.float32)
        by_x = tf.cast(tf.matmul(by_logits, table), tf.float32)  # [C * S, E]
        by_hidden = by_hidden.write(first // step, by_x)
        return first + step, by_hidden, by_table

    by_hidden = tf.TensorArray(
        tf.float32, -(-count // step), element_shape=[None, width], infer_shape=False
    )
    start = (0, by_hidden, tf.zeros(table.shape))
    _, by_hidden, by_table = tf.while_loop(
        lambda first, *_: first < count, add_texts, start, parallel_iterations=1
    )
    return tf.reshape(by_hidden.concat(), tf.shape(hidden)), by_table


def _real(padding_mask, text, length):
    """Returns the positions of a text that are not padding, `[R]`."""
    if padding_mask is None:
        return tf.range(length)
    return tf.cast(tf.where(padding_mask[text, 0])[:, 0], tf.int32)


def _logits(x, table):
    """Returns the logits of positions `[R, E]`, float32 `[R, V]`."""
    return tf.cast(tf.matmul(tf.cast(x, table.dtype), table, transpose_b=True), tf.float32)
