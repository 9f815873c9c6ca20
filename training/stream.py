"""One epoch of batches after the other, from any update on."""

import tensorflow as tf


def endless_batches(corpus, batch_tokens, *, seed=0, skip=0, accumulate=1):
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

    Returns:
        A `tf.data.Dataset` without end, of batches, or of tuples of `accumulate` batches.
    """
    first, done = divmod(skip * accumulate, corpus.steps(batch_tokens))

    def epoch(number):
        skip = tf.where(tf.equal(number, first), done, 0)
        return corpus.numbers(batch_tokens, shuffle=True, seed=seed, epoch=number, skip=skip)

    # No Python in it: an iterator that calls Python can hang a process that ends with an error.
    numbers = tf.data.Dataset.range(first, tf.int64.max).flat_map(epoch)
    if accumulate == 1:
        return corpus.gathered(numbers).prefetch(8)
    parts = [corpus.gathered(numbers.shard(accumulate, part)) for part in range(accumulate)]
    return tf.data.Dataset.zip(tuple(parts)).prefetch(8)
