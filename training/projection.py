"""The output projection and its loss in one, so that the logits never exist whole."""

import tensorflow as tf

CHUNK_BYTES = 2**25  # of the float32 logits that are in memory at a time


def projected_cross_entropy(hidden, table, labels, weights, label_smoothing=0.0):
    """Smoothed cross-entropy of `hidden @ table^T`, times weights, summed over all positions.

    What `smoothed_cross_entropy` of the logits would give, with `z` the logits and `e` the
    smoothing:

        logsumexp(z) - (1 - e) * z[label] - e * mean over v of z[v]

    Only the first term needs all logits, and its gradient by them is `softmax(z)`. It is computed
    for a chunk of positions at a time, each chunk's gradients at once, so that a few megabytes of
    logits are in memory and never [N, V] of them. The other terms are linear in `hidden` and in
    `table`; neither they nor their gradients need any logits.

    Args:
        hidden: Last hidden states, [N, D], floating.
        table: Output matrix, [V, D], in the dtype in which the products are to be computed.
        labels: Integer ids, [N].
        weights: How much each position counts, float32 [N]; taken as constants.
        label_smoothing: `e`, from 0 to below 1.

    Returns:
        A float32 scalar.

    Reference: Vaswani et al. (2017), sections 3.4 and 5.4; Szegedy et al. (2016), section 7.
    """

    @tf.custom_gradient
    def cross_entropy(hidden, table):
        total, by_hidden, by_table = _log_normalizers(hidden, table, weights)
        linear, linear_by_hidden, linear_by_table = _linear_terms(
            hidden, table, tf.cast(labels, tf.int32), weights, label_smoothing
        )

        def gradient(upstream):
            return (
                tf.cast(upstream * (by_hidden - linear_by_hidden), hidden.dtype),
                tf.cast(upstream * (by_table - linear_by_table), table.dtype),
            )

        return total - linear, gradient

    return cross_entropy(hidden, table)


def _linear_terms(hidden, table, labels, weights, smoothing):
    """Weighted sum of `(1 - e) * z[label] + e * mean of z`, and its gradients, in float32."""
    table = tf.cast(table, tf.float32)  # [V, D]
    size = table.shape[0]
    mean = tf.reduce_mean(table, axis=0)  # [D]
    towards = (1 - smoothing) * tf.gather(table, labels) + smoothing * mean  # [N, D]
    weighted = weights[:, None] * tf.cast(hidden, tf.float32)  # [N, D]
    by_label = tf.math.unsorted_segment_sum((1 - smoothing) * weighted, labels, size)  # [V, D]
    by_table = by_label + (smoothing / size) * tf.reduce_sum(weighted, axis=0)  # [V, D]
    return tf.reduce_sum(weighted * towards), weights[:, None] * towards, by_table


def _log_normalizers(hidden, table, weights):
    """Weighted sum of `logsumexp(hidden @ table^T)`, and its gradients, in float32."""
    count = hidden.shape[0] or tf.shape(hidden)[0]  # a Python number where it is known, for XLA
    chunks, rows = _chunks(count, table.shape[0])
    hidden = _cut(tf.cast(hidden, table.dtype), count, chunks, rows)  # [C, R, D]
    weights = _cut(weights[:, None], count, chunks, rows)  # [C, R, 1]

    def add_chunk(number, total, by_hidden, by_table):
        x, weight = hidden[number], weights[number]  # [R, D], [R, 1]
        logits = tf.cast(tf.matmul(x, table, transpose_b=True), tf.float32)  # [R, V]
        p = tf.nn.softmax(logits)  # [R, V]
        # log(sum(exp(z))) by way of the largest logit, whose probability is at least 1 / V.
        highest, likeliest = tf.reduce_max(logits, axis=-1), tf.reduce_max(p, axis=-1)  # [R]
        total += tf.reduce_sum(weight[:, 0] * (highest - tf.math.log(likeliest)))
        p = tf.cast(p, table.dtype)
        by_x = weight * tf.cast(tf.matmul(p, table), tf.float32)  # [R, D]
        weighted = tf.cast(weight, table.dtype) * x  # [R, D]
        by_table += tf.cast(tf.matmul(p, weighted, transpose_a=True), tf.float32)  # [V, D]
        return number + 1, total, by_hidden.write(number, by_x), by_table

    by_hidden = tf.TensorArray(tf.float32, chunks, element_shape=hidden.shape[1:])
    start = (0, 0.0, by_hidden, tf.zeros(table.shape, tf.float32))
    _, total, by_hidden, by_table = tf.while_loop(
        lambda number, *_: number < chunks, add_chunk, start, parallel_iterations=1
    )
    by_hidden = tf.reshape(by_hidden.stack(), (-1, table.shape[1]))[:count]
    return total, by_hidden, by_table


def _chunks(count, vocab_size):
    """How many chunks there are, and of how many rows each, for `count` rows of logits."""
    most = max(1, CHUNK_BYTES // (4 * vocab_size))
    chunks = (count + most - 1) // most
    return chunks, (count + chunks - 1) // chunks


def _cut(x, count, chunks, rows):
    """Cuts [N, D] into [C, R, D], filled up with zeros."""
    x = tf.pad(x, [[0, chunks * rows - count], [0, 0]])
    return tf.reshape(x, (chunks, rows, x.shape[-1]))
