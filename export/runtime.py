"""Parts that the programs which open an export share: checks, reasons of errors, a pool."""

import contextlib
import queue
import re

from keras_transformer.checks import is_integer

# What TensorFlow writes before the message of an error in a graph.
PLACES = ("Graph execution error:", "Detected at node", "<stack traces unavailable>", "  File ")


class Pool:
    """Objects of which each is used by one thread at a time.

    Args:
        items: List of them.
    """

    def __init__(self, items):
        self._free = queue.LifoQueue()  # so that few threads warm up few of them
        for item in items:
            self._free.put(item)

    @contextlib.contextmanager
    def borrow(self):
        """Lends one to the block; waits while other threads have them all."""
        item = self._free.get()
        try:
            yield item
        finally:
            self._free.put(item)


def check_threads(**numbers):
    """Raises a `ValueError` unless numbers of threads or of calls are integers of at least 1."""
    for name, number in numbers.items():
        if not is_integer(number) or number < 1:
            raise ValueError(
                f"`{name}` must be an integer of at least 1. Received: {name}={number!r}."
            )


def check_strings(sentences):
    """Raises `TypeError` unless `sentences` is a list of strings."""
    listed = isinstance(sentences, (list, tuple))
    if not listed or not all(isinstance(sentence, str) for sentence in sentences):
        raise TypeError(f"`sentences` must be a list of strings. Received: {sentences!r}.")


def check_n_best(n, most):
    """Raises unless an export gives `n` of the translations of a sentence."""
    if not 1 <= n <= most:
        raise ValueError(
            "`n` must be between 1 and the number of translations that the export gives, of which "
            f"there are {most}: `export` has --n-best for more. Received: n={n}."
        )


def reason(error):
    """Returns the first line of an error that says what was wrong, not where in a graph."""
    message = getattr(error, "message", None) or str(error)
    lines = [line for line in message.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(PLACES)]
    return (said or lines or [""])[0].strip()


def rule(error):
    """Returns what an assertion says that inputs must be; without one see `reason`."""
    in_graph, eagerly = r"assertion failed: \[([^\]]+)\]", r"Summarized data: b'([^']+)'"
    match = re.search(f"{in_graph}|{eagerly}", error.message)
    return (match[1] or match[2]) if match else reason(error)
