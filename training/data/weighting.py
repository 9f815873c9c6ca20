"""Choice of the examples of an epoch if they have different weights."""

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor

GOLDEN = 0.6180339887498949  # its multiples, modulo 1, fill the unit interval most evenly


class WeightedEpochs:
    """Systematic sampling of the examples of each epoch, in proportion to their weights.

    Every example is an interval on a line, as long as its weight. `size` points at equal distances
    select the examples in whose intervals they are. From one epoch to the next, all points move by
    `GOLDEN` times their distance, modulo that distance. So every example is selected as often as
    its weight says, the examples of a corpus take turns, and all epochs have the same number of
    examples. The line is sorted by length and then by weight. So the number of examples of a length
    and a corpus differs by at most one between epochs.

    The line is stored as groups of equal length and weight, so that memory does not depend on the
    number of examples.

    Args:
        lengths: Length of each group, [groups]. Groups are sorted by length, then by weight.
        weights: How often an epoch contains each example of a group, on average, [groups].
        counts: Number of examples in each group, [groups].

    Attributes:
        size: Number of examples in an epoch: the sum of the weights, rounded.
        counts: Number of places in an epoch that are planned for each length, beginning with length
            0. The example at a place is never longer than planned.
    """

    def __init__(self, lengths, weights, counts):
        lengths, counts = np.asarray(lengths, np.int64), np.asarray(counts, np.int64)
        weights = np.asarray(weights, np.float64)
        ends = np.cumsum(weights * counts)
        self.size = max(1, round(ends[-1]))
        self._distance = ends[-1] / self.size
        # Number of places that may fall into each group or an earlier one: an offset is below 1.
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

    def numbers(self, places, epoch) -> Tensor:
        """Returns the examples at some places of an epoch, which is sorted by length.

        Args:
            places: Integers, at least 0 and below `size`.
            epoch: Number of the epoch, an integer or scalar tensor.

        Returns:
            Numbers of the examples in the order by length and weight, int64, in the shape of
            `places`.
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
