"""The candidates of a batch: which tokens each output may have, and all of them as a vocabulary."""

import typing

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.predictor import Vocabulary

MULTIPLE = 8  # sizes are multiples of it, for the registers of matrix products
# Logits that a search computes where a batch has no more candidates than that, the smallest first.
# Seen on Multi30K, 4,000 pieces: 400 candidates of a sentence on average, 750 at most; 2,400 of 64.
SIZES = (1024, 4096)
WORTH = 0.75  # of the vocabulary: with more candidates than that all logits are computed


class Lists:
    """A shortlist as tensors, and the tokens that are candidates of every source.

    Args:
        shortlist: A `Shortlist`.
        vocabulary: The `Vocabulary` of the model.
        source_size: Number of source pieces.
        shared: Whether source and target have one vocabulary.

    Attributes:
        vocabulary: As above.
        front: Ids that have a place among the candidates of every source, increasing: the first
            ones of the shortlist, padding, beginning and end, and others that mean something to a
            search.

    Raises:
        ValueError: If the shortlist is another vocabulary's.
    """

    def __init__(self, shortlist, vocabulary, source_size, shared):
        shortlist.check_sizes(source_size, vocabulary.size)
        special = {vocabulary.pad_id, vocabulary.bos_id, vocabulary.eos_id, *vocabulary.silent_ids}
        if vocabulary.forced_eos_id is not None:
            special.add(vocabulary.forced_eos_id)
        first = set(range(shortlist.first)) - set(vocabulary.banned_ids)
        self.front = sorted(first | special)
        self.vocabulary, self._shared = vocabulary, shared
        self._longest = shortlist.longest
        # Not in the graph that is traced when it is made: all graphs share one copy.
        with tf.init_scope():
            self._offsets = tf.constant(shortlist.offsets, tf.int32)  # [V + 1]
            self._ids = tf.constant(np.append(shortlist.ids, self.front[0]), tf.int32)

    def most(self, source_shape, prefix_length=0):
        """Returns how many candidates a batch has at most; `None` if its shape is not known."""
        if None in source_shape or prefix_length is None:
            return None
        batch, length = source_shape
        of_a_piece = self._longest + self._shared
        return len(self.front) + batch * (length * of_a_piece + prefix_length)

    def allowed(self, source, prefix=None):
        """Returns which tokens are candidates of each source, boolean `[B, V]`.

        Those that the model never emits are none, even where they have a place at the front.

        Args:
            source: Token ids `[B, S]`, int32.
            prefix: Token ids `[B, P]`, int32, which are candidates as well. `None`: there are none.
        """
        pad_id = self.vocabulary.pad_id
        begins, ends = tf.gather(self._offsets, source), tf.gather(self._offsets, source + 1)
        places = tf.expand_dims(begins, 2) + tf.range(self._longest)  # [B, S, K]
        real = places < tf.expand_dims(ends, 2)
        real = tf.logical_and(real, tf.expand_dims(tf.not_equal(source, pad_id), 2))
        last = self._ids.shape[0] - 1
        ids = tf.gather(self._ids, tf.where(real, places, last))  # [B, S, K]
        rows = [tf.reshape(ids, [tf.shape(source)[0], -1])]
        rows += [source] if self._shared else []
        rows += [] if prefix is None else [prefix]
        hits = _marked(tf.concat(rows, axis=1), self.vocabulary.size)  # [B, V]
        banned = np.isin(np.arange(self.vocabulary.size), self.vocabulary.banned_ids)
        return tf.logical_and(tf.logical_or(hits, self.is_front), ~banned)

    def placed(self, allowed, prefix=None):
        """Returns which tokens have a place among the candidates of a batch, boolean `[V]`.

        Args:
            allowed: From `allowed`.
            prefix: As there. Its tokens have one even where the model itself bans them.
        """
        placed = tf.logical_or(tf.reduce_any(allowed, axis=0), self.is_front)
        if prefix is None:
            return placed
        forced = tf.reduce_any(_marked(prefix, self.vocabulary.size), axis=0)
        return tf.logical_or(placed, forced)

    @property
    def is_front(self):
        """A mask of the tokens at the front, an array `[V]`."""
        return np.isin(np.arange(self.vocabulary.size), self.front)


def _marked(ids, size):
    """A mask of the tokens among ids `[B, R]`: boolean `[B, size]`."""
    batch, count = tf.shape(ids)[0], tf.shape(ids)[1]
    rows = tf.tile(tf.expand_dims(tf.range(batch), 1), [1, count])  # [B, R]
    places = tf.reshape(tf.stack([rows, ids], axis=2), [-1, 2])  # [B * R, 2]
    counts = tf.scatter_nd(places, tf.ones_like(places[:, 0]), [batch, size])
    return counts > 0


class Candidates(typing.NamedTuple):
    """The candidates of all sources of a batch, as a vocabulary of C tokens.

    Attributes:
        ids: Their ids `[C]`, int32; increasing, but for those of the front, which come first, and
            empty places at the end.
        allowed: Which of them are candidates of each source, boolean `[B, C]`; no empty place is.
        places: For each token its place among them, int32 `[V]`; C for one that is none.
        vocabulary: Their `Vocabulary`.
    """

    ids: tf.Tensor
    allowed: tf.Tensor
    places: tf.Tensor
    vocabulary: Vocabulary

    @classmethod
    def of(cls, allowed, placed, lists, size):
        """Returns the first `size` candidates of a batch.

        Args:
            allowed: From `Lists.allowed`.
            placed: From `Lists.placed`.
            lists: The `Lists`.
            size: C, a Python integer, not below the length of the front.
        """
        whole, front = lists.vocabulary, lists.front
        at_front = lists.is_front  # [V]
        fixed = np.cumsum(at_front) - 1  # of those at the front their places
        rest = tf.logical_and(placed, ~at_front)  # [V]
        places = tf.cumsum(tf.cast(rest, tf.int32)) - 1 + len(front)
        places = tf.where(tf.logical_and(rest, places < size), places, size)
        places = tf.where(at_front, tf.constant(fixed, tf.int32), places)  # [V]
        # What has no place goes to one after the last.
        ids = tf.scatter_nd(tf.expand_dims(places, 1), tf.range(whole.size), [size + 1])[:size]
        filled = tf.range(size) < count(placed)
        here = tf.logical_and(tf.gather(tf.cast(allowed, tf.int32), ids, axis=1) > 0, filled)
        return cls(ids, here, places, _vocabulary(whole, front, size))


def _vocabulary(whole, front, size):
    """The `Vocabulary` of `size` candidates; what is banned is none of them."""
    special = (front.index(token) for token in (whole.pad_id, whole.bos_id, whole.eos_id))
    end = None if whole.forced_eos_id is None else front.index(whole.forced_eos_id)
    silent = tuple(front.index(token) for token in whole.silent_ids)
    return Vocabulary(size, *special, silent_ids=silent, forced_eos_id=end)


def count(which):
    """Returns how many of `which` are true, a scalar."""
    return tf.reduce_sum(tf.cast(which, tf.int32))


def sizes_of(lists, most, sizes=None):
    """Returns how many logits the searches for a batch compute, increasing; the last is enough.

    Args:
        lists: The `Lists`.
        most: How many candidates there are at most; `None`: as many as there are tokens.
        sizes: Numbers to choose from. `None`: those of `SIZES` that are worth it.
    """
    whole = lists.vocabulary.size
    enough = whole if most is None else -(-most // MULTIPLE) * MULTIPLE
    enough = whole if enough > WORTH * whole else enough
    known = [size for size in SIZES if size <= WORTH * whole] if sizes is None else sizes
    return [size for size in known if len(lists.front) <= size < enough] + [enough]
