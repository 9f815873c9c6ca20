"""Batches of all epochs in sequence, from any update on."""

import dataclasses
import typing
from typing import Any

import tensorflow as tf

# For functions of `tf.data` without `if` or `for` over tensors, which AutoGraph need not rewrite.
# Rewriting everything that training calls took two seconds at its start.
unconverted = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True)
class Epochs:
    """Training batches: the same number in every epoch, in an order that depends on the epoch.

    Args:
        steps: Number of batches in an epoch.
        make: Function that returns the `tf.data.Dataset` of the batches of an epoch. Its arguments
            are the index of the epoch, a scalar tensor, and a function that selects elements of a
            dataset. It applies the function to the indices of batches, before these are made, so
            that batches that are not selected cost nothing.
    """

    steps: int
    make: typing.Callable

    def batches(self, epoch, skip=0, every=1, turn=0) -> Any:
        """Returns batches of an epoch.

        Args:
            epoch: Index of the epoch, an integer or scalar tensor.
            skip: Number of batches to skip at the beginning; integer or scalar tensor.
            every: Interval of the batches to return, in batches of all epochs, counted from 0.
            turn: Returns only batches whose index is `turn` modulo `every`.
        """
        skip, epoch = tf.cast(skip, tf.int64), tf.cast(epoch, tf.int64)

        def select(dataset):
            dataset = dataset.skip(skip)
            if every == 1:
                return dataset
            numbered = dataset.enumerate(start=epoch * self.steps + skip)
            chosen = numbered.filter(lambda number, _: tf.equal(number % every, turn))
            return chosen.map(lambda _, element: element)

        return self.make(epoch, select)


def endless_batches(epochs, *, skip=0, accumulate=1) -> tf.data.Dataset:
    """Returns the batches of all updates, each epoch in an order of its own.

    A run that stopped after any update resumes with exactly the next batch. Every epoch has the
    same number of batches, in an order that depends only on its index, so nothing has to be read
    again.

    Args:
        epochs: The `Epochs` of a corpus, or of a `SubwordSampler`.
        skip: Number of updates to skip, counted from the beginning of epoch 0.
        accumulate: Number of batches in an update.

    Returns:
        An endless `tf.data.Dataset` of batches, or of tuples of `accumulate` batches.
    """
    first, done = divmod(skip * accumulate, epochs.steps)

    def part(turn):
        """Returns every `accumulate`-th batch."""

        def of_epoch(epoch):
            skipped = tf.where(tf.equal(epoch, first), done, 0)
            return epochs.batches(epoch, skipped, accumulate, turn)

        return numbers.flat_map(unconverted(of_epoch))

    # Not a Python generator: an iterator that calls Python when it is freed can hang a process that
    # ends with an error.
    numbers = tf.data.Dataset.range(first, tf.int64.max)
    if accumulate == 1:
        return part(0).prefetch(8)
    return tf.data.Dataset.zip(tuple(map(part, range(accumulate)))).prefetch(8)
