"""Hidden states without padding, for exports whose shapes are not fixed."""

import tensorflow as tf

from keras_transformer.layers.kernels import Packing
from keras_transformer.tensors import Tensor


class RealTokens(Packing):
    """Hidden states `[1, N, D]` of the N tokens of a batch that are not padding.

    Products with weights, norms and feed-forward networks then compute no padding; only attention
    gets all positions. Texts of different lengths gain most. Without padding nothing is lost,
    because the two look-ups of each attention replace the two transpositions of its heads.

    The first position of each text counts as real, so that a text that is nothing but padding has
    the same result at its first position as without packing. Everything else that reads padding
    gets the value of the previous real token of the same text.

    A mask for all queries of a text `[B, 1, T]` is needed, with a row for each text. Otherwise
    hidden states are stored with padding.
    """

    def pack(self, x, real) -> Tensor:  # noqa: D102
        if not _packs(real):
            return super().pack(x, real)
        flat = tf.reshape(x, [-1, x.shape[-1]])  # [B * T, D]
        return tf.expand_dims(tf.gather(flat, _kept(real)), 0)  # [1, N, D]

    def unpack(self, x, real) -> Tensor:  # noqa: D102
        return tf.gather(x[0], _places(real)) if _packs(real) else super().unpack(x, real)

    def length(self, x, real) -> int | Tensor:  # noqa: D102
        return tf.shape(real)[2] if _packs(real) else super().length(x, real)

    def split(self, features, x, count, real) -> Tensor:  # noqa: D102
        if not _packs(real):
            return super().split(features, x, count, real)
        rows = tf.reshape(features, [-1, features.shape[-1] // count])  # [N * H, K]
        numbers = tf.expand_dims(tf.range(count), 1)  # [H, 1]
        return tf.gather(rows, tf.expand_dims(_places(real) * count, 1) + numbers)  # [B, H, T, K]

    def join(self, heads, real) -> Tensor:  # noqa: D102
        if not _packs(real):
            return super().join(heads, real)
        count, size, length = heads.shape[1], heads.shape[3], tf.shape(heads)[2]
        text, place = _kept(real) // length, _kept(real) % length  # [N]
        starts = tf.expand_dims(text * (count * length) + place, 1)  # [N, 1]
        rows = tf.gather(tf.reshape(heads, [-1, size]), starts + tf.range(count) * length)
        return tf.reshape(rows, [-1, count * size])  # [N, H * K]

    def restore(self, features, heads, real) -> Tensor:  # noqa: D102
        if not _packs(real):
            return super().restore(features, heads, real)
        return tf.expand_dims(features, 0)  # [1, N, D]


# The same for every layer: TensorFlow computes equal operations of a graph once.


def _packs(real):
    # A mask `[1, 1, T]` may be meant for all texts of a batch.
    return real is not None and len(real.shape) == 3 and real.shape[0] != 1 and real.shape[1] == 1


def _is_kept(real):
    """Returns which positions of all texts are computed, boolean `[B, T]`."""
    first = tf.equal(tf.range(tf.shape(real)[2]), 0)  # [T]
    return tf.squeeze(real, 1) | first


def _kept(real):
    """Returns the numbers of the N computed positions among all B * T, int32 `[N]`."""
    flat = tf.reshape(_is_kept(real), [-1])  # [B * T]
    return tf.cast(tf.squeeze(tf.where(flat), 1), tf.int32)


def _places(real):
    """Returns for all positions the number of the last computed one up to it, int32 `[B, T]`."""
    kept = _is_kept(real)
    numbers = tf.cumsum(tf.cast(tf.reshape(kept, [-1]), tf.int32)) - 1  # [B * T]
    return tf.reshape(numbers, tf.shape(kept))
