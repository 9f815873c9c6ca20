"""Batches of few shapes and with little padding, from sentences of many lengths."""

import dataclasses

import numpy as np

BUCKETS = 16  # maximum number of widths of the batches of a corpus


@dataclasses.dataclass(frozen=True)
class Plan:
    """Plan of the batches of examples that are sorted by length, the same for every epoch.

    Its size depends on the number of buckets, not of examples. A run is a sequence of batches of
    the same shape: each bucket is one, and the last run is the incomplete batch.

    Attributes:
        ends: Number of examples in each bucket and all narrower ones, from narrow to wide,
            [buckets].
        widths: Length to which the examples of each bucket are padded, [buckets].
        batches: Number of batches in each run, [runs].
        starts: Index of the first example of each run among the sorted examples, [runs].
        rows: Number of examples in each batch of a run, [runs].
        buckets: Index of the bucket of each run, [runs].
    """

    ends: np.ndarray
    widths: np.ndarray
    batches: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    buckets: np.ndarray

    @property
    def steps(self) -> int:
        """Number of batches."""
        return int(self.batches.sum())


def plan_batches(counts, batch_tokens, widths) -> Plan:
    """Puts examples into buckets by length and cuts each bucket into batches.

    A batch takes as many examples of its bucket as `batch_tokens` allows. Examples that do not fill
    a batch go into the first batch of the next wider bucket. So all batches of a width have the
    same number of rows, except for the last batch of the widest bucket.

    Args:
        counts: Number of examples of each length, beginning with length 0, which no example has.
            The last number is not 0.
        batch_tokens: Maximum number of tokens in a batch, including padding.
        widths: Lengths to which buckets are padded, rising; widths that no example needs are
            ignored.

    Returns:
        A `Plan`.

    Raises:
        ValueError: If an example is longer than a batch.
    """
    counts = np.asarray(counts, np.int64)
    if len(counts) - 1 > batch_tokens:
        raise ValueError(
            "`batch_tokens`, or `batch_frames` for recordings, must be at least the length of the "
            f"longest example, {len(counts) - 1}. Received: {batch_tokens}."
        )
    widths = widths[: np.searchsorted(widths, len(counts) - 1) + 1]
    ends = np.cumsum(counts)[np.minimum(widths, len(counts) - 1)]
    runs, start = [], 0
    for bucket, (width, end) in enumerate(zip(widths.tolist(), ends.tolist(), strict=True)):
        rows = batch_tokens // width
        if batches := (end - start) // rows:
            runs.append((batches, start, rows, bucket))
            start += batches * rows
    if start < ends[-1]:
        runs.append((1, start, int(ends[-1]) - start, len(widths) - 1))
    return Plan(ends, widths, *np.array(runs, np.int64).T)


def choose_widths(counts, buckets) -> np.ndarray:
    """Chooses the widths that need the least padding.

    Each sentence is padded to the first of the widths `w_1 < ... < w_n` into which it fits; the sum
    of these widths over all sentences is minimal. The solution is exact, by dynamic programming
    over the last width: `cost(n, w) = min over v < w of cost(n - 1, v) + w * c(v, w)`, where
    `c(v, w)` is the number of sentences longer than `v` but not longer than `w`.

    Args:
        counts: Number of sentences of each length, beginning with length 0. The last number is not
            0.
        buckets: Maximum number of widths.

    Returns:
        The widths in rising order; the last is the maximum length.
    """
    longest = len(counts) - 1
    up_to = np.cumsum(counts)  # number of sentences of at most w tokens
    cost = np.where(np.arange(longest + 1) == 0, 0.0, np.inf)
    choices = []
    for _ in range(min(buckets, longest)):
        best, choice = cost.copy(), np.arange(longest + 1)  # by default, without another width
        for width in range(1, longest + 1):
            candidates = cost[:width] + width * (up_to[width] - up_to[:width])
            before = int(candidates.argmin())
            if candidates[before] < best[width]:
                best[width], choice[width] = candidates[before], before
        cost = best
        choices.append(choice)
    widths, width = [], longest
    for choice in reversed(choices):
        if choice[width] != width:
            widths.append(width)
            width = int(choice[width])
    return np.array(widths[::-1])
