"""Indices into a key/value cache, so that reordering hypotheses copies no keys and values."""

import typing

import tensorflow as tf

from keras_transformer.tensors import Tensor


class Ancestors(typing.NamedTuple):
    """Indices of the cache entries of each hypothesis.

    Keys and values never move in the cache. When hypotheses are reordered, only L integers of each
    hypothesis move.

    Attributes:
        places: `[B, N, L]`: for position `l` of hypothesis `n`, the beam index from 0 to N - 1
            under which its key and value were cached; -1 for a position not computed yet. `()` for
            N = 1, where the index is always 0.
    """

    places: typing.Any

    @classmethod
    def none_yet(cls, batch, length, width) -> "Ancestors":
        """Returns ancestors for L positions of N hypotheses, none of them computed yet."""
        return cls(() if width == 1 else tf.fill([batch, width, length], -1))

    def with_position(self, index) -> "Ancestors":
        """Returns ancestors with position `index` added: each hypothesis caches its own entry."""
        if self._is_single:
            return self
        width, length = self.places.shape[1], tf.shape(self.places)[2]
        here = tf.equal(tf.range(length), index)  # [L]
        return Ancestors(tf.where(here, tf.expand_dims(tf.range(width), 1), self.places))

    def extended(self, length) -> "Ancestors":
        """Returns ancestors with `length` further positions, none of them computed yet."""
        if self._is_single:
            return self
        return Ancestors(tf.pad(self.places, [[0, 0], [0, 0], [0, length]], constant_values=-1))

    def recalled(self, count) -> "Ancestors":
        """Returns ancestors whose first `count` positions are those of the first hypothesis."""
        if self._is_single:
            return self
        read = tf.range(tf.shape(self.places)[2]) < count  # [L]
        return Ancestors(tf.where(read, 0, self.places))

    def allowed(self) -> Tensor | None:
        """Returns the mask `[B, N, L * N]` for `MultiHeadSelfAttention.step`; `None` for N = 1."""
        if self._is_single:
            return None
        width, length = self.places.shape[1:]
        allowed = tf.equal(tf.expand_dims(self.places, 3), tf.range(width))  # [B, N, L, N]
        if not length:  # it is not known, or there are no positions yet
            batch, _, length = tf.unstack(tf.shape(self.places))
            return tf.reshape(allowed, [batch, width, length * width])
        return tf.reshape(allowed, [-1, width, length * width])

    @property
    def width(self) -> int:
        """Number N of hypotheses; 1 for an SSRU, whose cache has no positions."""
        return 1 if self._is_single else self.places.shape[1]

    @property
    def _is_single(self):
        return isinstance(self.places, tuple)
