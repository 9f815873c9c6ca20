"""`Entries`: which entries of a cache of keys and values each hypothesis of a beam attends to."""

import typing

from keras_transformer.checks import is_integer
from keras_transformer.decoding.predictor import pick
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class Entries(typing.NamedTuple):
    """Entries of a cache that each hypothesis attends to: its own and those of its ancestors.

    Keys and values do not move in the cache when hypotheses are reordered; only these masks do. A
    cache has slots of N entries, and each step fills one slot.

    Attributes:
        visible: Boolean `[B, N, C]`, `True` where a hypothesis attends to one of the C entries.
            `()` for N = 1, where every hypothesis attends to all earlier positions.
        shift: Number of the slot that a position fills, minus the number of the position: an
            int32 scalar. `()` stands for 0, as long as no entries have been dropped.
    """

    visible: typing.Any
    shift: typing.Any = ()

    @classmethod
    def none_yet(cls, batch, length, width) -> "Entries":
        """Returns the entries of L positions of N hypotheses, none of them computed yet."""
        return cls(() if width == 1 else tf.zeros([batch, width, length * width], tf.bool))

    def slot(self, index) -> Tensor | None:
        """Returns the number of the slot that position `index` fills; `None` if it is `index`."""
        return None if isinstance(self.shift, tuple) else index + self.shift

    def slots(self, index) -> dict[str, Tensor]:
        """Returns the argument `slot` of a model's `step`; none if it is `index`."""
        slot = self.slot(index)
        return {} if slot is None else {"slot": slot}

    def with_position(self, index) -> "Entries":
        """Returns the entries with position `index` added: each hypothesis attends to its own."""
        if self._is_single:
            return self
        slot = self.slot(index)
        own = (index if slot is None else slot) * self.width + tf.range(self.width)  # [N]
        own = tf.equal(tf.range(_count(self.visible)), tf.expand_dims(own, 1))  # [N, C]
        return self._replace(visible=tf.logical_or(self.visible, own))

    def of_parents(self, parents) -> "Entries":
        """Returns the entries of reordered hypotheses: see `Predictor.follow`."""
        return self._replace(visible=pick(self.visible, parents))

    def extended(self, length) -> "Entries":
        """Returns the entries with `length` further slots, none of them computed yet."""
        if self._is_single:
            return self
        more = [[0, 0], [0, 0], [0, length * self.width]]
        return self._replace(visible=tf.pad(self.visible, more))

    def compacted(self, past, length, index) -> tuple["Entries", Tensor]:
        """Returns the entries in use in `past` slots, with `length` empty slots after them.

        Where more are in use, the later ones are dropped.

        Args:
            past: Number of slots P; a Python integer if the shapes must be known.
            length: Number of further slots R.
            index: Number of the position that will fill the first empty slot.

        Returns:
            The new entries, and the numbers of the old entries that fill the P slots, int32
            `[B, P * N]`, arbitrary where there are fewer.
        """
        count, room = _count(self.visible), past * self.width
        places = tf.range(count)  # [C]
        order = tf.where(self.used, -places, -count)  # [B, C]
        missing = max(room - count, 0) if is_integer(room) and is_integer(count) else 0
        _, chosen = tf.math.top_k(order, room - missing)  # [B, P * N], the used entries first
        visible = tf.gather(self.visible, chosen, axis=2, batch_dims=1)  # [B, N, P * N]
        visible = tf.pad(visible, [[0, 0], [0, 0], [0, missing + length * self.width]])
        chosen = tf.pad(chosen, [[0, 0], [0, missing]])
        return Entries(visible, tf.cast(past - index, tf.int32)), chosen

    def recalled(self, count) -> "Entries":
        """Returns the entries with the first `count` positions, those of the first hypothesis."""
        if self._is_single:
            return self
        entries = tf.range(_count(self.visible))  # [C]
        read = tf.equal(entries % self.width, 0) & (entries < count * self.width)
        return self._replace(visible=tf.logical_or(self.visible, read))

    def attention_mask(self) -> Tensor | None:
        """Returns the mask `[B, N, C]` for `MultiHeadSelfAttention.step`; `None` for N = 1."""
        return None if self._is_single else self.visible

    @property
    def used(self) -> Tensor:
        """Mask of the entries that any hypothesis of a sentence attends to, boolean `[B, C]`."""
        return tf.reduce_any(self.visible, axis=1)

    @property
    def width(self) -> int:
        """Number N of hypotheses; 1 for a state, which has no positions."""
        return 1 if self._is_single else self.visible.shape[1]

    @property
    def _is_single(self):
        return isinstance(self.visible, tuple)


def _count(visible):
    """Returns the number of entries C, a Python integer if it is known."""
    return tf.shape(visible)[2] if visible.shape[2] is None else visible.shape[2]
