"""Number of sentences that a check compares, the time it may take, and its progress."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.export.place import silent

FEW = 32  # sentences that every check compares, however long they take
MANY = 64  # up to this number, all sentences are compared without measuring the time
SECONDS = 30.0  # for one search of all sentences with the model in memory; an export runs many
TOKENS = 256  # of an output that no source limits; a language model may fill all its positions
CHECK_SECONDS = 600.0  # for all calls of the check of a SavedModel; small models need a few


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
    generator.answer_batch(few[:1])  # traces the graph
    begin = clock()
    generator.answer_batch(few)
    seconds = clock() - begin
    count = len(sentences) if seconds == 0 else int(SECONDS * FEW / seconds)
    first = next(number for number, sentence in enumerate(sentences) if sentence.strip())
    return min(len(sentences), max(FEW, count, first + 1))


def limited(generator, search) -> Greedy | Beam:
    """Returns a search with which a check compares outputs: a text without a source ends early.

    After `TOKENS` tokens of a language model, more tokens show nothing new about its export.

    Args:
        generator: A `Generator`.
        search: A `Greedy` or `Beam`.
    """
    if generator.has_source:
        return search
    longest = generator.max_length
    most = min(TOKENS, longest, search.max_length or longest)
    return dataclasses.replace(search, max_length=most)


class CheckTime:
    """Time that a check may take, and a list of the calls that it leaves out when that is over.

    A call that has begun is not interrupted.

    Args:
        seconds: The time, from now on.
        clock: Function that returns the time in seconds.

    Attributes:
        left_out: List of the calls that were left out, as phrases.
    """

    def __init__(self, seconds: float = CHECK_SECONDS, clock=time.monotonic):
        self.seconds, self._clock, self._begin = seconds, clock, clock()
        self.left_out = []

    def allows(self, call: str) -> bool:
        """Returns whether there is time for one more call; otherwise the call is left out."""
        if self._clock() - self._begin < self.seconds:
            return True
        self.left_out.append(call)
        return False

    def answers(self, answer: Callable[[list], list], sentences: list, share: float) -> list:
        """Returns the answers to as many sentences, in order, as fit into a share of the time.

        At least those up to the first sentence that is not empty are answered, whose call makes the
        graph ready, and one more, which is timed.

        Args:
            answer: Function from a list of sentences to the list of their answers.
            sentences: List of strings, at least one of which is not empty.
            share: Part of the time, between 0 and 1.
        """
        some = next(number for number, sentence in enumerate(sentences, 1) if sentence.strip())
        answers = answer(sentences[:some])
        begin, timed, count = self._clock(), 0, 1
        while count > 0 and len(answers) < len(sentences):
            answers += answer(sentences[len(answers) : len(answers) + count])
            timed += count
            used = self._clock() - begin
            count = 2 * timed
            if used > 0:
                count = min(count, int((share * self.seconds - used) / used * timed))
        return answers


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
