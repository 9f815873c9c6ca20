"""The output projection and its loss in one, so that the logits never exist whole."""

import tensorflow as tf

CHUNK_BYTES = 2**25  # of the float32 logits that are in memory at a time


def projected_cross_entropy(hidden, table, labels, weights, label_smoothing=0.0):
    """Smoothed cross-entropy of `hidden @ table^T`, times weights, summed over all positions.

    What `smoothed_cross_entropy` of the logits would give, with `z` the logits and `e` the
    smoothing:

        logsumexp(z) - (1 - e) * z[label] - e * mean over v of z[v]

    Only the first term needs all logits. It is computed for a chunk of positions at a time, each
    chunk's gradients at once, so that a few megabytes of logits are in memory and never [N, V] of
    them. The other terms are linear in `hidden` and in `table`, so that their values, and the
    gradients of the last one, need no logits. The gradient by `z` of the first two is
    `softmax(z) - (1 - e) at the label`; the difference is taken in float32, before it is rounded.

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
        # Weights are of the size of 1 / tokens: too small for float16 before the loss is scaled.
        largest = tf.maximum(tf.reduce_max(weights), 0)  # 0 where there are none at all
        relative = tf.math.divide_no_nan(weights, largest)
        total, by_hidden, by_table = _with_logits(
            hidden, table, tf.cast(labels, tf.int32), relative, label_smoothing
        )
        smooth, smooth_by_hidden, smooth_by_table = _mean_logit(hidden, table, relative)

        def gradient(upstream):
            scale = upstream * largest
            return (
                tf.cast(scale * (by_hidden - label_smoothing * smooth_by_hidden), hidden.dtype),
                tf.cast(scale * (by_table - label_smoothing * smooth_by_table), table.dtype),
            )

        return largest * (total - label_smoothing * smooth), gradient

    return cross_entropy(hidden, table)


def _mean_logit(hidden, table, weights):
    """Weighted sum of `mean over v of z[v]`, and its gradients, in float32."""
    mean = tf.reduce_mean(tf.cast(table, tf.float32), axis=0)  # [D]
    weighted = weights[:, None] * tf.cast(hidden, tf.float32)  # [N, D]
    by_table = tf.reduce_sum(weighted, axis=0) / table.shape[0]  # [D], the same in every row
    return tf.reduce_sum(weighted * mean), weights[:, None] * mean, by_table


def _with_logits(hidden, table, labels, weights, smoothing):
    """Weighted sum of `logsumexp(z) - (1 - e) * z[label]`, and its gradients, in float32."""
    count = hidden.shape[0] or tf.shape(hidden)[0]  # a Python number where it is known, for XLA
    chunks, rows = _chunks(count, table.shape[0])
    hidden = _cut(tf.cast(hidden, table.dtype), count, chunks, rows)  # [C, R, D]
    weights = _cut(weights[:, None], count, chunks, rows)  # [C, R, 1]
    labels = _cut(labels[:, None], count, chunks, rows)  # [C, R, 1]

    def add_chunk(number, total, by_hidden, by_table):
        x, weight, label = hidden[number], weights[number], labels[number][:, 0]  # [R, D] ...
        logits = tf.cast(tf.matmul(x, table, transpose_b=True), tf.float32)  # [R, V]
        p = tf.nn.softmax(logits)  # [R, V]
        # log(sum(exp(z))) by way of the largest logit, whose probability is at least 1 / V.
        highest, likeliest = tf.reduce_max(logits, axis=-1), tf.reduce_max(p, axis=-1)  # [R]
        at_label = tf.gather(logits, label, batch_dims=1)  # [R]
        loss = highest - tf.math.log(likeliest) - (1 - smoothing) * at_label  # [R]
        total += tf.reduce_sum(weight[:, 0] * loss)
        place = tf.stack([tf.range(tf.size(label)), label], axis=1)  # [R, 2]
        right = tf.fill(tf.shape(label), 1 - smoothing)
        by_z = tf.cast(tf.tensor_scatter_nd_sub(p, place, right), table.dtype)  # [R, V]
        by_x = weight * tf.cast(tf.matmul(by_z, table), tf.float32)  # [R, D]
        weighted = tf.cast(weight, table.dtype) * x  # [R, D]
        by_table += tf.cast(tf.matmul(by_z, weighted, transpose_a=True), tf.float32)  # [V, D]
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
    chunks = count // most + 1  # never 0 of them, and none without a row
    return chunks, count // chunks + 1


def _cut(x, count, chunks, rows):
    """Cuts [N, D] into [C, R, D], filled up with zeros."""
    x = tf.pad(x, [[0, chunks * rows - count], [0, 0]])
    return tf.reshape(x, (chunks, rows, x.shape[-1]))
