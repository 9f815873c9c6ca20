"""Number of sentences that a check compares, and the progress of the check."""

import time
from collections.abc import Callable
from typing import Any

from keras_transformer.export.place import silent

FEW = 32  # sentences that every check compares, however long they take
MANY = 64  # up to this number, all sentences are compared without measuring the time
SECONDS = 30.0  # for one search of all sentences with the model in memory; an export runs many


def affordable(generator, sentences, progress=silent, clock=time.monotonic) -> int:
    """Returns the number of sentences that a check compares.

    A model with too little training may not stop generating, so that every sentence takes the
    maximum time. The model in memory therefore decodes `FEW` sentences first. If all sentences
    would take longer than `SECONDS`, only as many are compared as fit into that time, but at least
    `FEW`, and at least one that is not empty.

    Args:
        generator: A `Generator`.
        sentences: List of strings, at least one of which is not empty.
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


def counted(function, progress, what, total) -> Callable[[Any], Any]:
    """Wraps a function of batches so that it reports the number of finished texts.

    Args:
        function: Function of a list.
        progress: Function of a string, which is called after each batch.
        what: Beginning of that string, such as `"translating"`.
        total: Number of all texts.

    Returns:
        Function with the same argument and result as `function`.
    """
    done = 0

    def count(batch):
        nonlocal done
        results = function(batch)
        done += len(batch)
        progress(f"{what}: {done} of {total} texts")
        return results

    return count
