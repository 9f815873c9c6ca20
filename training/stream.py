"""One epoch of batches after the other, from any update on."""

import itertools

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

    def epoch(number, skip=0):
        return corpus.batches(batch_tokens, shuffle=True, seed=seed, epoch=number, skip=skip)

    def all_epochs():
        yield from epoch(first, done)
        for number in itertools.count(first + 1):
            yield from epoch(number)

    def updates():
        batches = all_epochs()
        while True:
            yield tuple(itertools.islice(batches, accumulate))

    # A Python generator, because every epoch is a dataset of its own. It runs ahead of the
    # training in another thread.
    batch = epoch(0).element_spec
    if accumulate == 1:
        dataset = tf.data.Dataset.from_generator(all_epochs, output_signature=batch)
    else:
        dataset = tf.data.Dataset.from_generator(updates, output_signature=(batch,) * accumulate)
    return dataset.prefetch(8)
