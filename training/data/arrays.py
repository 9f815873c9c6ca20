"""A corpus of arrays of one shape, and its batches: the same every time."""

import functools
import zlib

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.encoding import encode_rows
from keras_transformer.training.data.stream import Epochs, unconverted


class ArrayCorpus:
    """Examples as arrays of one shape, in memory.

    Args:
        columns: Dictionary from names to arrays `[examples, ...]`.
        assemble: Function of rows of every column, by their names, to a batch, inputs and labels.
        vary: See `Training.variation`.

    Attributes:
        size: Number of examples.
        tokens: Number of tokens of each text: there is none.
        too_long, cut: How many examples were left out or cut: none.
        fingerprint: A checksum of every number in its place.
    """

    tokens = ()
    too_long = cut = 0

    def __init__(self, columns, assemble, vary=None):
        self._assemble, self._vary = assemble, vary
        with tf.init_scope(), tf.device("CPU:0"):  # or a GPU would hold what tf.data reads
            self._columns = {name: tf.constant(column) for name, column in columns.items()}
        self.size = len(next(iter(columns.values())))

    @classmethod
    def from_rows(cls, rows, training, split="train", vary=None):
        """Encodes a dataset of examples.

        Args:
            rows: A `tf.data.Dataset` of tuples, the columns of a task.
            training: The `Training` of the task, whose fields have one shape.
            split: Name of the split that `rows` are of, for errors.
            vary: See the class.

        Raises:
            ValueError: If there is no example, or a value cannot be used.
        """
        columns = encode_rows(rows, training, split=split).columns
        return cls(columns, training.assemble, vary)

    @functools.cached_property
    def fingerprint(self):
        # What a training that continues compares with the corpus that it began with.
        checksum = 0
        for column in self._columns.values():
            array = np.ascontiguousarray(column.numpy())
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
        rows = {name: tf.gather(column, numbers) for name, column in self._columns.items()}
        if draws is not None and self._vary is not None:
            rows = self._vary(tf.gather(draws, numbers), rows)
        return self._assemble(**rows)


def _drawn(size, seed, epoch):
    """The numbers of all examples in the order of an epoch, and two random numbers for each."""
    seeds = tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)])
    of_order, of_examples = (tf.random.fold_in(seeds, number) for number in (0, 1))
    keys = tf.random.stateless_uniform([size], of_order, None, None, tf.uint32, alg="philox")
    order = tf.argsort(tf.cast(keys, tf.int64), stable=True)  # [size]
    return order, tf.random.stateless_uniform([size, 2], of_examples, alg="philox")
