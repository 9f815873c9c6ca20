"""Ways to use several processors: all for a whole batch, or one for each part of the batch."""

import concurrent.futures

from measurements import shortest


def ways(cores, batch_size):
    """Returns pairs of the number of parts decoded in parallel and the threads for each part."""
    return list(dict.fromkeys([(1, cores), (min(cores, batch_size), 1)]))


def fastest(candidates):
    """Returns the candidate, a `Parts`, that decodes the batch in the shortest time."""
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda candidate: shortest(lambda: candidate.run(1)))


class Parts:
    """A batch in parts, each decoded by a function in its own thread.

    Args:
        decoders: Functions without arguments, each of which decodes a part.
        rows: Function from the result of a decoder to a list of rows of token ids; not timed.
        parts: Number of parts decoded in parallel, for the report.
        threads: Number of threads for each part, or shared by all parts, for the report.
    """

    def __init__(self, decoders, rows, parts, threads):
        self._decoders = decoders
        self._pool = concurrent.futures.ThreadPoolExecutor(len(decoders))
        self.metadata = {
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
