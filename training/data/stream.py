"""One epoch of batches after the other, from any update on."""

import tensorflow as tf


def endless_batches(corpus, batch_tokens, *, seed=0, skip=0, accumulate=1, sampler=None):
    """Returns the batches of all updates, each epoch in an order of its own.

    A training that stopped after any update goes on with exactly the batch that would have come
    next: every epoch has the same number of batches and an order that follows from `seed` and the
    epoch's number, so nothing of what was seen has to be read again.

    Args:
        corpus: A `TokenizedCorpus`.
        batch_tokens: Most tokens of either side in a batch, padding included.
        seed: Decides the orders.
        skip: Updates to leave out, counted from the beginning of epoch 0.
        accumulate: Batches of an update.
        sampler: A `SubwordSampler` of the corpus, or `None` for the usual pieces.

    Returns:
        A `tf.data.Dataset` without end, of batches, or of tuples of `accumulate` batches.
    """
    first, done = divmod(skip * accumulate, (sampler or corpus).steps(batch_tokens))

    def numbers(epoch):
        return corpus.numbers(batch_tokens, shuffle=True, seed=seed, epoch=epoch, skip=left(epoch))

    def sampled(epoch):
        return sampler.batches(batch_tokens, epoch, left(epoch))

    def left(epoch):
        return tf.where(tf.equal(epoch, first), done, 0)

    def part(number):
        """Every `accumulate`-th batch."""
        if sampler is not None:
            return epochs.flat_map(sampled).shard(accumulate, number)
        return corpus.gathered(epochs.flat_map(numbers).shard(accumulate, number))

    # No Python generator: an iterator that calls Python when it is freed can hang a process that
    # ends with an error.
    epochs = tf.data.Dataset.range(first, tf.int64.max)
    if accumulate == 1:
        return part(0).prefetch(8)
    return tf.data.Dataset.zip(tuple(map(part, range(accumulate)))).prefetch(8)
