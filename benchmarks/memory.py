"""Speed of reading memory, which no step of a search for one sentence can surpass."""

import numpy as np
from figures import shortest


class Reading:
    """Passes over numbers, each of which is read once.

    In the faster of two ways: the maximum is the faster one in a cache, the product with itself
    beyond it. A product of a matrix and a vector, which is what a search does, is read in patches
    by some libraries, half as fast as the memory is.

    Args:
        size: Bytes of the numbers: those that fit into a cache are read faster.
    """

    def __init__(self, size):
        self._numbers = np.random.default_rng(1).standard_normal(max(1, size // 4), np.float32)
        self._read = min(
            (np.max, self._product), key=lambda read: shortest(lambda: read(self._numbers))
        )
        self.facts = {"bytes": self._numbers.nbytes}

    @staticmethod
    def _product(numbers):
        return numbers @ numbers

    def run(self, steps):
        """Reads all numbers `steps` times."""
        for _ in range(steps):
            self._read(self._numbers)
        return {}


def make(order):
    """Returns what reads a number of bytes."""
    return Reading(order["bytes"])
