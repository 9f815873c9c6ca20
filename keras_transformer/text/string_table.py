"""Tables from strings to integers, in the graph and without a resource."""

import numpy as np

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

BUCKETS = 2**62  # so many that strings of a table with equal hashes do not occur


class StringTable:
    """Integers of strings, which are found by their hashes.

    Args:
        numbers: Dictionary from strings to integers of at least 0, also an attribute.
        exact: Whether strings are also compared, which puts all of them into the graph. Otherwise
            another string may be taken for one of the table; the probability that it has the hash
            of one of 60,000 strings is about 1 in 10**14.

    Raises:
        ValueError: If two strings have the same hash.
    """

    def __init__(self, numbers, exact=True):
        self.numbers = numbers
        with tf.init_scope():
            hashes = _hashes(list(numbers)).numpy() if numbers else np.zeros(0, np.int64)
        if len({*hashes.tolist()}) < len(numbers):
            raise ValueError("`numbers` must be of strings with different hashes.")
        order = np.argsort(hashes)
        self._hashes = hashes[order]
        self._strings = np.array([*numbers], object)[order] if exact else None
        self._numbers = np.array([*numbers.values()], np.int32)[order]

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def look_up(self, strings) -> Tensor:
        """Returns the integer of each string of `[N]`, int32 `[N]`; -1 if the table has none."""
        if not self:
            return tf.fill(tf.shape(strings), -1)
        hashes, known = _hashes(strings), tf.constant(self._hashes)
        place = tf.minimum(tf.searchsorted(known, hashes), len(self._hashes) - 1)
        equal = tf.equal(tf.gather(known, place), hashes)  # [N]
        if self._strings is not None:
            texts = tf.constant([string.encode() for string in self._strings])
            equal &= tf.equal(tf.gather(texts, place), strings)
        return tf.where(equal, tf.gather(tf.constant(self._numbers), place), -1)


def _hashes(strings):
    """Returns an integer for each string of `[N]`, int64."""
    return tf.strings.to_hash_bucket_fast(strings, BUCKETS)
