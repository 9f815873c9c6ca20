"""Words that are tokens as a whole, although the merges of a vocabulary split them."""

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.text.code_points import shifted
from keras_transformer.text.ragged_rows import row_ids

BUCKETS = 2**62  # so many that words with equal hashes do not occur


class WholeWords:
    """Finds words that are one token, and replaces their tokens by it, in the graph.

    Args:
        ids: Dictionary from words to the ids of their tokens.

    Raises:
        ValueError: If two words have the same hash.
    """

    def __init__(self, ids):
        with tf.init_scope():
            hashes = _hashes(list(ids)).numpy() if ids else np.zeros(0, np.int64)
        if len({*hashes.tolist()}) < len(ids):
            raise ValueError("`ids` must be of words with different hashes.")
        order = np.argsort(hashes)
        self._hashes = hashes[order]
        self._words = np.array([*ids], object)[order]
        self._ids = np.array([*ids.values()], np.int32)[order]

    def __bool__(self) -> bool:
        return len(self._ids) > 0

    def look_up(self, words) -> Tensor:
        """Returns the id of each word that this table has, int32 `[W]`; -1 for the others.

        Args:
            words: Strings, `[W]`.
        """
        if not self:
            return tf.fill(tf.shape(words), -1)
        place = tf.searchsorted(tf.constant(self._hashes), _hashes(words))
        place = tf.minimum(place, len(self._ids) - 1)
        # The second comparison rules out other words with the same hash.
        known = tf.constant([word.encode() for word in self._words])
        found = tf.equal(tf.gather(known, place), words)  # [W]
        return tf.where(found, tf.gather(tf.constant(self._ids), place), -1)

    def join(self, ids, tokens) -> Tensor:
        """Returns the tokens of words, with one token for those that this table has.

        Args:
            ids: What `look_up` returned, `[W]`.
            tokens: Their tokens, ragged int32 `[W, (P)]`; a word with an id has at least one.
        """
        if not self:
            return tokens
        row = row_ids(tokens)  # [T]
        lengths = tf.where(ids >= 0, tf.ones_like(tokens.row_lengths()), tokens.row_lengths())
        ids = tf.gather(ids, row)
        kept = (ids < 0) | (row != shifted(row, 1, -1))
        values = tf.boolean_mask(tf.where(ids >= 0, ids, tokens.values), kept)
        return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)


def _hashes(words):
    """Returns an integer for each string, `[W]`."""
    return tf.strings.to_hash_bucket_fast(words, BUCKETS)
