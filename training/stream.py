"""One epoch of batches after the other, from any update on."""

import itertools

import tensorflow as tf


def endless_batches(corpus, batch_tokens, *, seed=0, skip=0):
    """Returns the batches of all epochs, each epoch in an order of its own.

    A training that stopped after any update goes on with exactly the batch that would have come
    next: every epoch has the same number of batches and an order that follows from `seed` and the
    epoch's number, so nothing of what was seen has to be read again.

    Args:
        corpus: A `TokenizedCorpus`.
        batch_tokens: Most tokens of either side in a batch, padding included.
        seed: Decides the orders.
        skip: Batches to leave out, counted from the beginning of epoch 0.

    Returns:
        A `tf.data.Dataset` without end.
    """
    first, done = divmod(skip, corpus.steps(batch_tokens))

    def epoch(number, skip=0):
        return corpus.batches(batch_tokens, shuffle=True, seed=seed, epoch=number, skip=skip)

    def all_epochs():
        yield from epoch(first, done)
        for number in itertools.count(first + 1):
            yield from epoch(number)

    # A Python generator, because every epoch is a dataset of its own. It runs ahead of the
    # training in another thread.
    dataset = tf.data.Dataset.from_generator(all_epochs, output_signature=epoch(0).element_spec)
    return dataset.prefetch(8)
