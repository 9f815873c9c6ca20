"""Ways to use several processors: all of them for one batch, or one for each part of it."""

import concurrent.futures

from figures import shortest


def ways(cores, batch_size):
    """Returns pairs of the number of parts, decoded at a time, and of the threads for each."""
    return list(dict.fromkeys([(1, cores), (min(cores, batch_size), 1)]))


def fastest(candidates):
    """Returns the one of these `Parts` that decodes the batch in the shortest time."""
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda candidate: shortest(lambda: candidate.run(1)))


class Parts:
    """A batch in parts, each decoded by a function in a thread of its own.

    Args:
        decoders: Functions without arguments, which decode their parts.
        rows: Function of what one of them returns to a list of rows of token ids; not timed.
        parts: Of the batch at a time, and
        threads: for each of them, or shared by all; for the report.
    """

    def __init__(self, decoders, rows, parts, threads):
        self._decoders = decoders
        self._pool = concurrent.futures.ThreadPoolExecutor(len(decoders))
        self.facts = {
            "tokens": [row for output in self._decode() for row in rows(output)],
            "threads": {"parts": parts, "each": threads},
        }

    def _decode(self):
        if len(self._decoders) == 1:
            return [self._decoders[0]()]
        return list(self._pool.map(lambda decode: decode(), self._decoders))

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._decode()
        return {}
