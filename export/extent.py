"""The extent of a check: how many sentences it can afford, and how far it is."""

import time

from keras_transformer.export.place import silent

FEW = 32  # sentences that every check compares, however long they take
MANY = 64  # so many are compared without looking at the clock
SECONDS = 30.0  # for all sentences, by one search of the model in memory; an export makes many


def affordable(generator, sentences, progress=silent, clock=time.monotonic):
    """Returns how many of the sentences a check compares.

    A model that was trained too little may not stop generating, and then each sentence takes the
    longest time there is. The model in memory translates `FEW` sentences; if all of them would take
    longer than `SECONDS`, the check compares as many as that allows, and at least `FEW`.

    Args:
        generator: A `Generator`.
        sentences: List of strings, of which one is not empty.
        progress: See `export_saved_model`.
        clock: Function that returns the time in seconds.
    """
    if len(sentences) <= MANY:
        return len(sentences)
    progress("measuring how long a sentence takes")
    few = list(sentences[:FEW])
    generator.translate_batch(few[:1])  # traces the graph
    begin = clock()
    generator.translate_batch(few)
    seconds = clock() - begin
    count = len(sentences) if seconds == 0 else int(SECONDS * FEW / seconds)
    first = next(number for number, sentence in enumerate(sentences) if sentence.strip())
    return min(len(sentences), max(FEW, count, first + 1))


def counted(function, progress, what, total):
    """Wraps a function of batches: after each one, `progress` is told how many sentences are done.

    Args:
        function: Function of a list.
        progress: Function of a string.
        what: What is done with the sentences, the beginning of that string.
        total: How many there are.

    Returns:
        A function like `function`.
    """
    done = 0

    def count(batch):
        nonlocal done
        results = function(batch)
        done += len(batch)
        progress(f"{what}: {done} of {total} sentences")
        return results

    return count
