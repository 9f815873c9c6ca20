"""Cutting sentences of many lengths into batches of few shapes, with little padding."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Plan:
    """Plan of batches of examples that are sorted by length, the same for every epoch.

    It has a few numbers for each bucket, however many examples there are. `runs` are batches of one
    shape that follow each other: those of each bucket, and last the one that is not full.

    Attributes:
        ends: For each bucket, from narrow to wide, how many examples are in it and in the narrower
            ones, [buckets].
        widths: To which length the examples of each bucket are padded, [buckets].
        batches, starts, rows: For each run, how many batches it has, which place among the sorted
            examples is its first, and how many examples are in each batch, [runs].
        buckets: For each run, the number of its bucket, [runs].
    """

    ends: np.ndarray
    widths: np.ndarray
    batches: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    buckets: np.ndarray

    @property
    def steps(self):
        """Number of batches."""
        return int(self.batches.sum())


def plan_batches(counts, batch_tokens, widths):
    """Puts examples into buckets by length and cuts each bucket into batches.

    A batch takes as many examples of its bucket as `batch_tokens` allow. Those that are left and
    fill no batch go into the first one of the next wider bucket. So all batches of a width have the
    same number of rows, except for the last of the widest.

    Args:
        counts: Number of examples of each length, from length 0, of which there are none; the last
            is not 0.
        batch_tokens: Most tokens in a batch, padding included.
        widths: The lengths that buckets are padded to, rising; those that no example needs are left
            out.

    Returns:
        A `Plan`.

    Raises:
        ValueError: If an example is longer than a batch.
    """
    counts = np.asarray(counts, np.int64)
    if len(counts) - 1 > batch_tokens:
        raise ValueError(
            "`batch_tokens` must be at least the length of the longest sentence. Received: "
            f"batch_tokens={batch_tokens}, and a sentence of {len(counts) - 1} tokens."
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


def choose_widths(counts, buckets):
    """Chooses the widths that need the least padding.

    The widths `w_1 < ... < w_n`, of which each sentence takes the first that holds it, minimise the
    sum of the widths over all sentences. Found exactly, by dynamic programming over the last width:
    `cost(n, w) = min over v < w of cost(n - 1, v) + w * (sentences longer than v, not than w)`.

    Args:
        counts: Number of sentences of each length, from length 0; the last is not 0.
        buckets: Most widths to choose.

    Returns:
        The widths in rising order; the last is the longest length.
    """
    longest = len(counts) - 1
    up_to = np.cumsum(counts)  # sentences of <= w tokens
    cost = np.where(np.arange(longest + 1) == 0, 0.0, np.inf)
    choices = []
    for _ in range(min(buckets, longest)):
        best, choice = cost.copy(), np.arange(longest + 1)  # or as good with a width fewer
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
