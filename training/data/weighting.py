"""Corpora that count differently: which pairs an epoch holds if each has a weight."""

import numpy as np
import tensorflow as tf

GOLDEN = 0.6180339887498949  # its multiples, modulo 1, fill the unit interval most evenly


class WeightedEpochs:
    """Draws the pairs of each epoch, by systematic sampling.

    Every pair has a stretch on a line, as long as its weight; `size` points at equal distances
    choose the pairs on whose stretch they fall. From one epoch to the next all points move by
    `GOLDEN` of their distance, modulo that distance. So every pair is chosen as often as its weight
    says, the pairs of a corpus take turns, and all epochs have the same number of pairs. The line
    is sorted by length and then by weight: of each length and corpus every epoch holds, but for one
    pair, the same number.

    Args:
        weights: How often an epoch is to hold each pair on average, [pairs], positive.
        lengths: Tokens in each pair, [pairs], by which batches are planned.

    Attributes:
        size: Number of pairs of an epoch: the sum of the weights, rounded.
        lengths: The most tokens that the pair at each place of any epoch has, [size], rising.
    """

    def __init__(self, weights, lengths):
        order = np.lexsort((weights, lengths))
        ends = np.cumsum(weights[order])
        self.size = max(1, round(ends[-1]))
        self._distance = ends[-1] / self.size
        # The last pair that may be chosen for a place: an offset is below 1.
        last = np.searchsorted(ends, np.arange(1, self.size + 1) * self._distance)
        last = np.minimum(last, len(ends) - 1)
        self.lengths = lengths[order][last]
        with tf.init_scope(), tf.device("CPU:0"):
            self._order, self._last = tf.constant(order, tf.int64), tf.constant(last, tf.int64)
            self._ends = tf.constant(ends, tf.float64)

    def numbers(self, epoch):
        """Returns the numbers of the pairs of an epoch, int64 [size], in the order of `lengths`.

        Args:
            epoch: Integer or scalar tensor.
        """
        offset = tf.math.floormod(0.5 + tf.cast(epoch, tf.float64) * GOLDEN, 1.0)
        points = (tf.range(self.size, dtype=tf.float64) + offset) * self._distance
        chosen = tf.searchsorted(self._ends, points, side="right", out_type=tf.int64)
        return tf.gather(self._order, tf.minimum(chosen, self._last))
