"""Candidates of a batch: the tokens that each output may contain, and their joint vocabulary."""

import typing

import numpy as np

from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding.predictor import Vocabulary
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

MULTIPLE = 8  # of all sizes, so that matrix products use whole vector registers
# Numbers of logits to compute: a batch takes the smallest one that holds all its candidates.
# Measured on Multi30K with 4,000 tokens: 400 candidates for a sentence on average, 750 at most, and
# 2,400 for 64 sentences.
SIZES = (1024, 4096)
WORTH = 0.75  # share of the vocabulary; with more candidates, all logits are computed


class Lists:
    """A shortlist as tensors, with the tokens that are candidates for every source.

    Args:
        shortlist: A `Shortlist`.
        vocabulary: The `Vocabulary` of the model.
        source_size: Number of source tokens.
        shared: Whether source and target share a vocabulary.

    Attributes:
        vocabulary: The `Vocabulary` of the model.
        front: Increasing ids that come first among the candidates of every batch: the `first`
            tokens of the shortlist, `pad_id`, `bos_id`, `eos_id`, and other special tokens of a
            search.

    Raises:
        ValueError: If the shortlist does not fit the vocabularies.
    """

    def __init__(self, shortlist, vocabulary, source_size, shared):
        shortlist.check_sizes(source_size, vocabulary.size)
        rules = vocabulary.rules
        special = {vocabulary.pad_id, vocabulary.bos_id, vocabulary.eos_id}
        special |= {*rules.suppressed_ids, *rules.end_ids}
        special |= {rules.forced_bos_id, rules.forced_eos_id} - {None}
        first = set(range(shortlist.first)) - set(rules.banned_ids)
        self.front = sorted(first | special)
        self.vocabulary, self._shared = vocabulary, shared
        self._longest = shortlist.longest
        # Outside of any graph being traced, so that all graphs share one copy.
        with tf.init_scope():
            self._offsets = tf.constant(shortlist.offsets, tf.int32)  # [V + 1]
            self._ids: typing.Any = tf.constant(np.append(shortlist.ids, self.front[0]), tf.int32)

    def most(self, source_shape, prefix_length=0) -> int | None:
        """Returns the maximum number of candidates of a batch; `None` if its shape is unknown."""
        if None in source_shape or prefix_length is None:
            return None
        batch, length = source_shape
        per_token = self._longest + self._shared
        return len(self.front) + batch * (length * per_token + prefix_length)

    def allowed(self, source, prefix=None) -> Tensor:
        """Returns the mask of the candidates of each source, boolean `[B, V]`.

        Tokens that the model never emits are not candidates, even if they are in `front`.

        Args:
            source: Token ids `[B, S]`, int32.
            prefix: Token ids `[B, P]`, int32, which are also candidates. `None`: no prefix.
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
        banned = np.isin(np.arange(self.vocabulary.size), self.vocabulary.rules.banned_ids)
        return tf.logical_and(tf.logical_or(hits, self.is_front), ~banned)

    def placed(self, allowed, prefix=None) -> Tensor:
        """Returns the mask of the tokens in the joint vocabulary of a batch, boolean `[V]`.

        Args:
            allowed: Result of `allowed`.
            prefix: See `allowed`. Its tokens are included even if the model itself bans them.
        """
        placed = tf.logical_or(tf.reduce_any(allowed, axis=0), self.is_front)
        if prefix is None:
            return placed
        forced = tf.reduce_any(_marked(prefix, self.vocabulary.size), axis=0)
        return tf.logical_or(placed, forced)

    @property
    def is_front(self) -> np.ndarray:
        """Mask of the tokens in `front`, an array `[V]`."""
        return np.isin(np.arange(self.vocabulary.size), self.front)


def _marked(ids, size):
    """Returns the mask of the tokens that occur in ids `[B, R]`, boolean `[B, size]`."""
    batch, count = tf.shape(ids)[0], tf.shape(ids)[1]
    rows = tf.tile(tf.expand_dims(tf.range(batch), 1), [1, count])  # [B, R]
    places = tf.reshape(tf.stack([rows, ids], axis=2), [-1, 2])  # [B * R, 2]
    counts = tf.scatter_nd(places, tf.ones_like(places[:, 0]), [batch, size])
    return counts > 0


class Candidates(typing.NamedTuple):
    """Candidates of all sources of a batch, as a vocabulary of C tokens.

    Attributes:
        ids: Token ids of the candidates `[C]`, int32: those of `Lists.front`, then the others in
            increasing order, then unused entries.
        allowed: Mask of the candidates of each source, boolean `[B, C]`; `False` for unused
            entries.
        places: Index among the candidates for each token, int32 `[V]`; C if it is no candidate.
        vocabulary: The `Vocabulary` of the candidates.
    """

    ids: "tf.Tensor"
    allowed: "tf.Tensor"
    places: "tf.Tensor"
    vocabulary: Vocabulary

    @classmethod
    def of(cls, allowed, placed, lists, size) -> "Candidates":
        """Returns the first `size` candidates of a batch.

        Args:
            allowed: Result of `Lists.allowed`.
            placed: Result of `Lists.placed`.
            lists: The `Lists`.
            size: Number of candidates C, a Python integer, at least the length of `Lists.front`.
        """
        whole, front = lists.vocabulary, lists.front
        at_front = lists.is_front  # [V]
        fixed = np.cumsum(at_front) - 1  # indices of the tokens in `front`
        rest = tf.logical_and(placed, ~at_front)  # [V]
        places = tf.cumsum(tf.cast(rest, tf.int32)) - 1 + len(front)
        places = tf.where(tf.logical_and(rest, places < size), places, size)
        places = tf.where(at_front, tf.constant(fixed, tf.int32), places)  # [V]
        # Tokens that are not placed are scattered to index C, which is cut off.
        ids = tf.scatter_nd(tf.expand_dims(places, 1), tf.range(whole.size), [size + 1])[:size]
        filled = tf.range(size) < count(placed)
        here = tf.logical_and(tf.gather(tf.cast(allowed, tf.int32), ids, axis=1) > 0, filled)
        return cls(ids, here, places, _vocabulary(whole, front, size))


def _vocabulary(whole, front, size):
    """Returns the `Vocabulary` of `size` candidates, which include no banned tokens."""
    special = (front.index(token) for token in (whole.pad_id, whole.bos_id, whole.eos_id))
    rules = whole.rules
    begin, end = (
        None if token is None else front.index(token)
        for token in (rules.forced_bos_id, rules.forced_eos_id)
    )
    rules = OutputRules(
        suppressed_ids=tuple(front.index(token) for token in rules.suppressed_ids),
        forced_bos_id=begin,
        forced_eos_id=end,
        no_repeat_ngram=rules.no_repeat_ngram,
        end_ids=tuple(front.index(token) for token in rules.end_ids),
        max_length_ratio=rules.max_length_ratio,
    )
    return Vocabulary(size, *special, rules)


def count(which) -> Tensor:
    """Returns the number of `True` in `which`, a scalar."""
    return tf.reduce_sum(tf.cast(which, tf.int32))


def sizes_of(lists, most, sizes=None) -> list[int]:
    """Returns increasing numbers of logits for a search to choose from; the last always suffices.

    Args:
        lists: The `Lists`.
        most: Maximum number of candidates; `None`: the size of the vocabulary.
        sizes: Numbers to choose from. `None`: the `SIZES` up to `WORTH` of the vocabulary.
    """
    whole = lists.vocabulary.size
    enough = whole if most is None else -(-most // MULTIPLE) * MULTIPLE
    enough = whole if enough > WORTH * whole else enough
    known = [size for size in SIZES if size <= WORTH * whole] if sizes is None else sizes
    return [size for size in known if len(lists.front) <= size < enough] + [enough]
