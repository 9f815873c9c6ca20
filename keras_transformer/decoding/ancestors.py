"""The places of hypotheses in a key/value cache, in which none is ever moved."""

import typing

import tensorflow as tf


class Ancestors(typing.NamedTuple):
    """Where in the cache the positions of each hypothesis are.

    No hypothesis moves in the cache: when hypotheses change places, L integers of each move
    instead of its keys and values.

    Attributes:
        places: Of position `l` of hypothesis `n` the place from 0 to N - 1 at which it was
            computed, `[B, N, L]`; -1 for a position that is not there yet. `()` for N = 1, where
            all positions are at the same place.
    """

    places: typing.Any

    @classmethod
    def none_yet(cls, batch, length, width):
        """Returns ancestors with room for L positions, none filled yet, of N hypotheses each."""
        return cls(() if width == 1 else tf.fill([batch, width, length], -1))

    def with_position(self, index):
        """Returns ancestors that also have position `index`, each at its hypothesis's own place."""
        if self._of_one:
            return self
        width, length = self.places.shape[1:]
        here = tf.equal(tf.range(length), index)  # [L]
        return Ancestors(tf.where(here, tf.expand_dims(tf.range(width), 1), self.places))

    def extended(self, length):
        """Returns ancestors with room for `length` more positions."""
        if self._of_one:
            return self
        return Ancestors(tf.pad(self.places, [[0, 0], [0, 0], [0, length]], constant_values=-1))

    def allowed(self):
        """Boolean `[B, N, L * N]`, see `MultiHeadSelfAttention.step`; `None` for N = 1."""
        if self._of_one:
            return None
        width, length = self.places.shape[1:]
        allowed = tf.equal(tf.expand_dims(self.places, 3), tf.range(width))  # [B, N, L, N]
        return tf.reshape(allowed, [-1, width, length * width])

    @property
    def _of_one(self):
        return isinstance(self.places, tuple)
