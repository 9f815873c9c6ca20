"""A corpus of arrays of one shape, and its batches: the same every time."""

import functools
import zlib

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.stream import Epochs, unconverted


class ArrayCorpus:
    """Examples as arrays of one shape, in memory.

    Args:
        columns: Arrays `[examples, ...]`.
        assemble: Function of rows of every column to a batch, inputs and labels.
        vary: Function of random numbers from 0 to 1, float32 `[B, 2]`, and of rows of every column
            to such rows: what an epoch of a training changes of its examples. The numbers follow
            from seed and epoch alone. `None`: nothing.

    Attributes:
        size: Number of examples.
        tokens: Number of tokens of each text: there is none.
        too_long, cut: How many examples were left out or cut: none.
        fingerprint: A checksum of every number in its place.
    """

    tokens = ()
    too_long = cut = 0

    def __init__(self, columns, assemble, vary=None):
        self.size = len(columns[0])
        if not self.size:
            raise ValueError("The data must hold at least one example. Received: none.")
        self._assemble, self._vary = assemble, vary
        self._arrays = [np.ascontiguousarray(column) for column in columns]
        with tf.init_scope(), tf.device("CPU:0"):  # or a GPU would hold what tf.data reads
            self._columns = [tf.constant(array) for array in self._arrays]

    @functools.cached_property
    def fingerprint(self):
        # What a training that continues compares with the corpus that it began with.
        checksum = 0
        for array in self._arrays:
            checksum = zlib.crc32(repr((array.shape, array.dtype.str)).encode(), checksum)
            checksum = zlib.crc32(array, checksum)
        return f"{checksum:08x}"

    def steps(self, batch_size):
        """Returns the number of batches of an epoch."""
        return -(-self.size // batch_size)

    def batches(self, batch_size):
        """Returns the batches of all examples, in their order.

        Args:
            batch_size: Examples of a batch; the last may have fewer.

        Returns:
            A `tf.data.Dataset` of what `assemble` makes of the examples.
        """
        numbers = tf.data.Dataset.range(self.size).batch(batch_size)
        return numbers.map(unconverted(self._batch)).prefetch(tf.data.AUTOTUNE)

    def epochs(self, batch_size, seed=0):
        """Returns the `Epochs` of a training, each in an order that `seed` and its number decide.

        Args:
            batch_size: Examples of a batch; the last of an epoch may have fewer.
            seed: Non-negative integer.
        """

        def make(epoch, select):
            order, draws = _drawn(self.size, seed, epoch)
            numbers = select(tf.data.Dataset.from_tensor_slices(order).batch(batch_size))
            return numbers.map(
                unconverted(lambda numbers: self._batch(numbers, draws)),
                num_parallel_calls=tf.data.AUTOTUNE,
            )

        return Epochs(self.steps(batch_size), make)

    def _batch(self, numbers, draws=None):
        rows = [tf.gather(column, numbers) for column in self._columns]
        if draws is not None and self._vary is not None:
            rows = self._vary(tf.gather(draws, numbers), *rows)
        return self._assemble(*rows)


def _drawn(size, seed, epoch):
    """The numbers of all examples in the order of an epoch, and two random numbers for each."""
    seeds = tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)])
    of_order, of_examples = (tf.random.fold_in(seeds, number) for number in (0, 1))
    keys = tf.random.stateless_uniform([size], of_order, None, None, tf.uint32, alg="philox")
    order = tf.argsort(tf.cast(keys, tf.int64), stable=True)  # [size]
    return order, tf.random.stateless_uniform([size, 2], of_examples, alg="philox")
