"""The largest few of many numbers, without sorting them."""

import tensorflow as tf

from keras_transformer.decoding.constraints import NEVER

BLOCKS = (50, 400)  # sizes that are worth it, at least and at most
FALLBACK = 64  # for vocabularies without a divisor among these


def top_k(values, k):
    """`tf.math.top_k`, found through the blocks in which the largest values are.

    The k largest of all lie in the k blocks of the largest maxima. To reduce V numbers to the
    maxima of their blocks takes one pass, where each runtime's own sort takes many: on a CPU three
    (LiteRT, XLA) to five times as long (TensorFlow), which was most of what a step of a beam cost.
    Of equal values those of the lower index come first, as in `tf.math.top_k`.

    Args:
        values: `[..., V]`, floating, above `NEVER`, with all axes but the first of known size.
        k: How many, a Python integer, at most V.

    Returns:
        The values `[..., k]`, the largest first, and their indices `[..., k]`, int32.
    """
    size = _block_size(values.shape[-1])
    count = -(-values.shape[-1] // size)
    if count <= k:
        return tf.math.top_k(values, k)
    axes = values.shape[1:-1]
    blocks = _padded(values, count * size)
    blocks = tf.reshape(blocks, (-1, *axes, count, size))
    _, chosen = tf.math.top_k(tf.reduce_max(blocks, axis=-1), k)  # [..., k]
    chosen = -tf.math.top_k(-chosen, k)[0]  # in order, so that equal values stay in theirs
    candidates = tf.gather(blocks, chosen, batch_dims=1 + len(axes))  # [..., k, size]
    candidates = tf.reshape(candidates, (-1, *axes, k * size))
    best, places = tf.math.top_k(candidates, k)
    block = tf.gather(chosen, places // size, batch_dims=1 + len(axes))
    return best, block * size + places % size


def _block_size(total):
    """A divisor, or otherwise a size for which the last block is padded."""
    root = max(BLOCKS[0], round(total**0.5))
    divisors = [size for size in range(BLOCKS[0], BLOCKS[1] + 1) if total % size == 0]
    return min(divisors, key=lambda size: abs(size - root), default=FALLBACK)


def _padded(values, length):
    missing = length - values.shape[-1]
    if not missing:
        return values
    return tf.pad(
        values, [[0, 0]] * (values.shape.rank - 1) + [[0, missing]], constant_values=NEVER
    )
