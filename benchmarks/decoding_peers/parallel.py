"""Ways to use several processors: all of them for one batch, or one for each part of it."""

import concurrent.futures
import time

TRIALS = 5  # calls, of which the fastest counts


def ways(cores, batch_size):
    """Returns pairs of the number of parts, decoded at a time, and of the threads for each."""
    return list(dict.fromkeys([(1, cores), (min(cores, batch_size), 1)]))


def sizes(batch_size, parts):
    """Returns how many sentences each part has; they differ by one at most."""
    return [(batch_size + part) // parts for part in range(parts)]


def fastest(candidates):
    """Returns the one whose `run` is the fastest."""
    return candidates[0] if len(candidates) == 1 else min(candidates, key=_fastest_call)


def _fastest_call(candidate):
    times = []
    for _ in range(TRIALS):
        begin = time.perf_counter()
        candidate.run(1)
        times.append(time.perf_counter() - begin)
    return min(times)


class Parts:
    """A batch in parts, each decoded by a function in a thread of its own.

    Args:
        decoders: Functions to the tokens of their parts, lists of rows.
        parts: Of the batch at a time, and
        threads: for each of them, or shared by all; for the report.
    """

    def __init__(self, decoders, parts, threads):
        self._decoders = decoders
        self._pool = concurrent.futures.ThreadPoolExecutor(len(decoders))
        self.facts = {
            "tokens": self._tokens(), "threads": {"parts": parts, "each": threads},
        }  # fmt: skip

    def _tokens(self):
        if len(self._decoders) == 1:
            return self._decoders[0]()
        parts = self._pool.map(lambda decode: decode(), self._decoders)
        return [row for part in parts for row in part]

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._tokens()
        return {}
