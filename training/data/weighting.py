"""Corpora that count differently: which examples an epoch holds if each has a weight."""

import numpy as np
import tensorflow as tf

GOLDEN = 0.6180339887498949  # its multiples, modulo 1, fill the unit interval most evenly


class WeightedEpochs:
    """Draws the examples of each epoch, by systematic sampling.

    Every example has a stretch on a line, as long as its weight; `size` points at equal distances
    choose the examples on whose stretch they fall. From one epoch to the next all points move by
    `GOLDEN` of their distance, modulo that distance. So every example is chosen as often as its
    weight says, the examples of a corpus take turns, and all epochs have the same number of
    examples. The line is sorted by length and then by weight: of each length and corpus every epoch
    holds, but for one example, the same number.

    The line is kept as groups of equal length and weight, so memory does not depend on the number
    of examples.

    Args:
        lengths, weights, counts: Of each group, sorted by length and then by weight: its length,
            how often an epoch is to hold each of its examples on average, and how many it has.

    Attributes:
        size: Number of examples of an epoch: the sum of the weights, rounded.
        counts: How many places of an epoch are planned for each length, from length 0. An example
            at such a place is never longer.
    """

    def __init__(self, lengths, weights, counts):
        lengths, counts = np.asarray(lengths, np.int64), np.asarray(counts, np.int64)
        weights = np.asarray(weights, np.float64)
        ends = np.cumsum(weights * counts)
        self.size = max(1, round(ends[-1]))
        self._distance = ends[-1] / self.size
        # The last example that may be chosen for a place: an offset is below 1.
        places = np.minimum(np.floor(ends / self._distance).astype(np.int64), self.size)
        places[-1] = self.size
        self.counts = np.zeros(lengths[-1] + 1, np.int64)
        np.add.at(self.counts, lengths, np.diff(places, prepend=0))
        self.counts = np.trim_zeros(self.counts, "b")
        with tf.init_scope(), tf.device("CPU:0"):
            self._ends, self._places = tf.constant(ends), tf.constant(places)
            self._begins = tf.constant(ends - weights * counts)
            self._weights, self._counts = tf.constant(weights), tf.constant(counts)
            self._first = tf.constant(np.cumsum(counts) - counts)

    def numbers(self, places, epoch):
        """Returns the examples at some places of an epoch, which is sorted by length.

        Args:
            places: Integers from 0 to below `size`.
            epoch: Integer or scalar tensor.

        Returns:
            int64, as `places`: numbers of examples, which are sorted by length and then by weight.
        """
        places = tf.cast(places, tf.int64)
        offset = tf.math.floormod(0.5 + tf.cast(epoch, tf.float64) * GOLDEN, 1.0)
        points = (tf.cast(places, tf.float64) + offset) * self._distance
        last = tf.searchsorted(self._places, places, side="right", out_type=tf.int64)
        group = tf.searchsorted(self._ends, points, side="right", out_type=tf.int64)
        group = tf.minimum(group, last)
        inside = (points - tf.gather(self._begins, group)) / tf.gather(self._weights, group)
        most = tf.gather(self._counts, group) - 1
        inside = tf.clip_by_value(tf.cast(tf.floor(inside), tf.int64), 0, most)
        return tf.gather(self._first, group) + inside
