"""Output projection and cross-entropy in one step, which never keeps all logits in memory."""

import tensorflow as tf

from keras_transformer.devices import has_only_cpus
from keras_transformer.tensors import Tensor

CHUNK_BYTES = 2**25  # limit of the float32 logits that are in memory at a time
CHUNK_ROWS = 208  # limit of their rows on a CPU, whose cache larger chunks do not fit into
IMPRECISE = 1e-30  # float32 loses digits below 1e-38


def projected_cross_entropy(
    hidden,
    table,
    labels,
    weights,
    label_smoothing=0.0,
    consistency=None,
    bias=None,
    teacher=None,
) -> Tensor:
    """Computes the weighted sum of the smoothed cross-entropy of `hidden @ table^T + bias`.

    Equals `smoothed_cross_entropy` of the logits. With `z` for the logits and `e` for the
    smoothing, the cross-entropy of a position is

        logsumexp(z) - (1 - e) * z[label] - e * mean over v of z[v]

    Only the first term needs all logits. It is computed for a chunk of positions at a time,
    together with its gradients, so that a few megabytes of logits are in memory instead of
    [N, V]. The other terms are linear in each argument, so that their values, and the gradients of
    the last one, need no logits. The gradient of the first two terms with respect to `z` is
    `softmax(z) - (1 - e) at the label`; the difference is computed in float32, before rounding.

    With a `teacher`, a share of the target distribution is the teacher's: with shares `s_k` of K
    tokens, whose sum is `s`, the target is `1 - s` times the smoothed label plus the shares. It is
    still linear in `z`, so that `sum over k of s_k * z[token k]` joins the other terms.

    Args:
        hidden: Last hidden states, [N, D], floating.
        table: Output matrix, [V, D], in the dtype in which the products are computed.
        labels: Integer ids, [N].
        weights: Weight of each position, float32 [N]; treated as constants.
        label_smoothing: `e`, at least 0 and below 1.
        consistency: A `Consistency`, whose loss on the difference between two passes is added. The
            passes are the two halves of `hidden`: rows n and N / 2 + n are the same position, with
            equal labels and weights. `None`: one pass.
        bias: Float32 [V]. `None`: no bias.
        teacher: Tokens, int32 [N, K], and their shares of the target distribution, float32
            [N, K], constants whose sum over K is at most 1; see `teacher_shares`. `None`: the
            target is the smoothed label.

    Returns:
        A float32 scalar.

    Reference: Vaswani et al. (2017), sections 3.4 and 5.4; Szegedy et al. (2016), section 7; Kim
        and Rush (2016), section 3.1, for the teacher.
    """

    @tf.custom_gradient
    def cross_entropy(hidden, table, *bias):
        # Weights are about 1 / tokens: too small for float16 before the loss is scaled.
        largest = tf.maximum(tf.reduce_max(weights), 0)  # 0 for an empty batch
        relative = tf.math.divide_no_nan(weights, largest)
        kept = 1.0 if teacher is None else 1 - tf.reduce_sum(teacher[1], axis=-1)  # [N]
        right = kept * (1 - label_smoothing) * tf.ones_like(weights)  # [N]
        total, gradients = _with_logits(
            hidden, table, bias, tf.cast(labels, tf.int32), relative, right, consistency, teacher
        )
        counted = relative if consistency is None else consistency.counted(relative)
        smooth, smooth_gradients = _mean_logit(hidden, table, bias, counted * kept)

        def gradient(upstream):
            scale = upstream * largest
            return [
                tf.cast(scale * (slope - label_smoothing * smooth_slope), tensor.dtype)
                for tensor, slope, smooth_slope in zip(
                    (hidden, table, *bias), gradients, smooth_gradients, strict=True
                )
            ]

        return largest * (total - label_smoothing * smooth), gradient

    return cross_entropy(hidden, table, *([] if bias is None else [bias]))


def _mean_logit(hidden, table, bias, weights):
    """Returns the weighted sum of `mean over v of z[v]`, and a list of gradients, in float32."""
    mean = tf.reduce_mean(tf.cast(table, tf.float32), axis=0)  # [D]
    weighted = weights[:, None] * tf.cast(hidden, tf.float32)  # [N, D]
    by_table = tf.reduce_sum(weighted, axis=0) / table.shape[0]  # [D], the same in every row
    total, gradients = tf.reduce_sum(weighted * mean), [weights[:, None] * mean, by_table]
    for offsets in bias:
        total += tf.reduce_sum(weights) * tf.reduce_mean(offsets)
        gradients.append(tf.reduce_sum(weights) / table.shape[0])  # the same for every logit
    return total, gradients


def _with_logits(hidden, table, bias, labels, weights, right, consistency, teacher):
    """Returns the weighted sum of `logsumexp(z)` minus targets times `z`, and a list of gradients.

    The targets are `right` at the label, [N], and the shares of the teacher's tokens. The loss of a
    `Consistency` is added. All are float32. `bias` is a tuple of one tensor or none.
    """
    cut = _Cut(hidden, table.shape[0], passes=1 if consistency is None else 2)
    hidden = cut(tf.cast(hidden, table.dtype))  # [C, R, D]
    weights, labels, right = (cut(x[:, None]) for x in (weights, labels, right))  # [C, R, 1] each
    teacher = None if teacher is None else [*map(cut, teacher)]  # [C, R, K] twice

    def add_chunk(number, total, by_hidden, by_table, *by_bias):
        x, weight = hidden[number], weights[number]  # [R, D], [R, 1]
        logits = _logits(x, table, *bias)  # [R, V]
        p = tf.nn.softmax(logits)  # [R, V]
        normalizer = _log_sum_exp(logits, p, labels[number])  # [R]
        if teacher is None and consistency is None and not by_bias:
            by_z, at_target = _label_subtracted(
                p, logits, labels[number], right[number], table.dtype
            )
        else:
            by_z, at_target = _subtract(p, logits, labels[number], right[number])
        loss = normalizer - at_target  # [R]
        if teacher is not None:
            tokens, shares = teacher
            by_z, at_target = _subtract(by_z, logits, tokens[number], shares[number])
            loss -= at_target
        if consistency is not None:
            loss, by_z = consistency.added(loss, by_z, p, logits - normalizer[:, None])
        by_bias = [gradient + tf.reduce_sum(weight * by_z, axis=0) for gradient in by_bias]  # [V]
        by_z = tf.cast(by_z, table.dtype)
        total += tf.reduce_sum(weight[:, 0] * loss)
        by_x = weight * tf.cast(tf.matmul(by_z, table), tf.float32)  # [R, D]
        weighted = tf.cast(weight, table.dtype) * x  # [R, D]
        by_table += tf.cast(tf.matmul(by_z, weighted, transpose_a=True), tf.float32)  # [V, D]
        return number + 1, total, by_hidden.write(number, by_x), by_table, *by_bias

    by_hidden = tf.TensorArray(tf.float32, cut.chunks, element_shape=hidden.shape[1:])
    by_bias = [tf.zeros(offsets.shape, tf.float32) for offsets in bias]
    start = (0, 0.0, by_hidden, tf.zeros(table.shape, tf.float32), *by_bias)
    _, total, by_hidden, *by_others = tf.while_loop(
        lambda number, *_: number < cut.chunks, add_chunk, start, parallel_iterations=1
    )
    return total, [cut.joined(by_hidden.stack()), *by_others]


def _log_sum_exp(logits, p, tokens):
    """Returns `log(sum(exp(z)))` of logits, [R], by their probabilities `p` at a token of each row.

    It equals `z - log(p)` at any token, here at the given ones, [R, 1]. If one of them is so
    improbable that `p` is imprecise, the most probable token of each row is used, whose `p` is at
    least 1 / V. To find it takes two more passes over the logits.
    """

    def at_largest():
        return tf.reduce_max(logits, axis=-1), tf.reduce_max(p, axis=-1)

    z, likely = (tf.gather(values, tokens[:, 0], batch_dims=1) for values in (logits, p))  # [R]
    imprecise = tf.reduce_any(likely < IMPRECISE)
    z, likely = tf.cond(imprecise, at_largest, lambda: (z, likely))
    return z - tf.math.log(likely)


def _subtract(slopes, logits, tokens, shares):
    """Subtracts targets, [R, K] at some tokens, from slopes [R, V].

    Returns:
        The difference, [R, V], and the logits times the targets, summed over the tokens, [R].
    """
    rows = tf.broadcast_to(tf.range(tf.shape(tokens)[0])[:, None], tf.shape(tokens))  # [R, K]
    slopes = tf.tensor_scatter_nd_sub(slopes, tf.stack([rows, tokens], axis=-1), shares)
    return slopes, tf.reduce_sum(shares * tf.gather(logits, tokens, batch_dims=1), axis=-1)


def _label_subtracted(p, logits, labels, shares, dtype):
    """Returns the same as `_subtract` of one label [R, 1], with slopes of another dtype.

    Only the difference at the label is computed in float32: TensorFlow copies the slopes to change
    them, and those of 16 bits are half as long.
    """
    places = tf.concat([tf.range(tf.shape(labels)[0])[:, None], labels], axis=-1)  # [R, 2]
    share = shares[:, 0]  # [R]
    at_label = tf.cast(tf.gather_nd(p, places) - share, dtype)  # [R]
    slopes = tf.tensor_scatter_nd_update(tf.cast(p, dtype), places, at_label)  # [R, V]
    return slopes, share * tf.gather_nd(logits, places)


def _logits(x, table, bias=None):
    """Returns the logits [R, V] of hidden states [R, D], in float32."""
    logits = tf.cast(tf.matmul(x, table, transpose_b=True), tf.float32)
    return logits if bias is None else logits + bias


def projected_metrics(hidden, table, labels, weights, label_smoothing=0.0, bias=None) -> Tensor:
    """Computes loss and metrics of a validation, for a chunk of positions at a time.

    Args:
        hidden, table, labels, weights, label_smoothing, bias: As for `projected_cross_entropy`.

    Returns:
        Three float32 scalars, weighted sums over all positions: the smoothed cross-entropy, the
        plain cross-entropy, and the number of positions whose label has the highest logit (the
        first one, if several logits are equal).
    """
    cut = _Cut(hidden, table.shape[0], passes=1)
    hidden = cut(tf.cast(hidden, table.dtype))  # [C, R, D]
    weights = cut(weights[:, None])  # [C, R, 1]
    labels = cut(tf.cast(labels, tf.int32)[:, None])  # [C, R, 1]

    def add_chunk(number, smoothed, plain, right):
        weight, label = weights[number][:, 0], labels[number][:, 0]  # [R] twice
        logits = _logits(hidden[number], table, bias)  # [R, V]
        normalizer = tf.reduce_logsumexp(logits, axis=-1)  # [R]
        target = tf.gather(logits, label, batch_dims=1)  # [R]
        loss = normalizer - target  # [R]
        smooth = label_smoothing * (target - tf.reduce_mean(logits, axis=-1))  # [R]
        hit = tf.equal(tf.argmax(logits, axis=-1, output_type=tf.int32), label)  # [R]
        return (
            number + 1,
            smoothed + tf.reduce_sum(weight * (loss + smooth)),
            plain + tf.reduce_sum(weight * loss),
            right + tf.reduce_sum(weight * tf.cast(hit, tf.float32)),
        )

    sums = tf.while_loop(
        lambda number, *_: number < cut.chunks, add_chunk, (0, 0.0, 0.0, 0.0), parallel_iterations=1
    )
    return sums[1:]


class _Cut:
    """Cuts rows into chunks of at most `CHUNK_BYTES` of logits, on a CPU also `CHUNK_ROWS`.

    Every chunk contains the same positions of all passes.

    Args:
        hidden: Hidden states, `[N, D]`, whose number of rows determines the size of a chunk.
        vocab_size: Number of logits of a row.
        passes: Number of passes P; each has `N / P` rows, and they follow one another.

    Call arguments:
        x: Rows, `[N, ...]`.

    Returns:
        C chunks of R rows, `[C, R, ...]`, padded with zeros. In each, the rows of the first pass
        come first.
    """

    def __init__(self, hidden, vocab_size, passes):
        rows = hidden.shape[0] or tf.shape(hidden)[0]  # static where it is known: XLA needs it
        most = CHUNK_BYTES // (4 * vocab_size)
        if has_only_cpus():
            most = min(most, CHUNK_ROWS)
        most = most // passes or 1
        self.passes = passes
        self.count = rows // passes
        self.chunks = self.count // most + 1  # at least one, and none without a row
        self.rows = self.count // self.chunks + 1  # in a chunk, of each pass

    def __call__(self, x):
        x = tf.reshape(x, (self.passes, self.count, x.shape[-1]))
        x = tf.pad(x, [[0, 0], [0, self.chunks * self.rows - self.count], [0, 0]])
        x = tf.reshape(x, (self.passes, self.chunks, self.rows, x.shape[-1]))
        x = tf.transpose(x, (1, 0, 2, 3))  # [C, P, R / P, D]
        return tf.reshape(x, (self.chunks, self.passes * self.rows, x.shape[-1]))

    def joined(self, x):
        """Returns the rows `[N, D]` that were cut into chunks `x`, `[C, R, D]`."""
        x = tf.reshape(x, (self.chunks, self.passes, self.rows, x.shape[-1]))
        x = tf.transpose(x, (1, 0, 2, 3))  # [P, C, R / P, D]
        x = tf.reshape(x, (self.passes, self.chunks * self.rows, x.shape[-1]))[:, : self.count]
        return tf.reshape(x, (self.passes * self.count, x.shape[-1]))
