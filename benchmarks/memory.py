"""Speed of reading memory, an upper bound for the steps of a search for one sentence."""

import numpy as np
from measurements import shortest


class Reading:
    """Passes over an array, in which each number is read once.

    Uses the faster of two ways: the maximum, which is faster for an array in the processor's cache,
    or the dot product with itself, which is faster for larger ones. A product of a matrix and a
    vector, as in a search, is no good measure: some libraries read the matrix in blocks, at half
    the speed of the memory.

    Args:
        size: Size of the array in bytes; arrays that fit into a cache are read faster.
    """

    def __init__(self, size):
        self._numbers = np.random.default_rng(1).standard_normal(max(1, size // 4), np.float32)
        self._read = min(
            (np.max, self._product), key=lambda read: shortest(lambda: read(self._numbers))
        )
        self.metadata = {"bytes": self._numbers.nbytes}

    @staticmethod
    def _product(numbers):
        return numbers @ numbers

    def run(self, steps):
        """Reads all numbers `steps` times."""
        for _ in range(steps):
            self._read(self._numbers)
        return {}


def make(order):
    """Returns the `Reading` of a number of bytes."""
    return Reading(order["bytes"])
