"""One epoch of batches after the other, from any update on."""

import dataclasses
import typing

import tensorflow as tf

# For functions of `tf.data`: AutoGraph need not rewrite their source, which has no `if` or `for`
# over tensors. To rewrite all that a training calls took two seconds at its start.
unconverted = tf.autograph.experimental.do_not_convert


@dataclasses.dataclass(frozen=True)
class Epochs:
    """The batches of a training: every epoch has as many, in an order that its number decides.

    Args:
        steps: Number of batches of an epoch.
        make: Function of the number of an epoch, a scalar tensor, and of a function that leaves
            some elements of a dataset out, to the `tf.data.Dataset` of the batches that are left.
            What stands for a batch before it is made is left out, so that it costs nothing.
    """

    steps: int
    make: typing.Callable

    def batches(self, epoch, skip=0, every=1, turn=0):
        """Returns batches of an epoch.

        Args:
            epoch: Integer or scalar tensor.
            skip: Batches at the beginning to leave out; integer or scalar tensor.
            every: Of the batches of all epochs, numbered from 0 on, only those are taken
            turn: whose number is `turn` modulo `every`.
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


def endless_batches(epochs, *, skip=0, accumulate=1):
    """Returns the batches of all updates, each epoch in an order of its own.

    A training that stopped after any update goes on with exactly the batch that would have come
    next: every epoch has the same number of batches and an order that follows from its number, so
    nothing of what was seen has to be read again.

    Args:
        epochs: The `Epochs` of a corpus, or of a `SubwordSampler`.
        skip: Updates to leave out, counted from the beginning of epoch 0.
        accumulate: Batches of an update.

    Returns:
        An endless `tf.data.Dataset` of batches, or of tuples of `accumulate` batches.
    """
    first, done = divmod(skip * accumulate, epochs.steps)

    def part(turn):
        """Every `accumulate`-th batch."""

        def of_epoch(epoch):
            skipped = tf.where(tf.equal(epoch, first), done, 0)
            return epochs.batches(epoch, skipped, accumulate, turn)

        return numbers.flat_map(unconverted(of_epoch))

    # No Python generator: an iterator that calls Python when it is freed can hang a process that
    # ends with an error.
    numbers = tf.data.Dataset.range(first, tf.int64.max)
    if accumulate == 1:
        return part(0).prefetch(8)
    return tf.data.Dataset.zip(tuple(map(part, range(accumulate)))).prefetch(8)
