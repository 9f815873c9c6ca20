"""Cutting sentences of many lengths into batches of few shapes, with little padding."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Plan:
    """How sentences are cut into batches: the same for every epoch, whatever its order.

    Attributes:
        order: Numbers of the sentences, sorted by the width of their bucket, else as they came.
        segments: For each bucket, from narrow to wide, where it begins and ends in `order`.
        starts, rows, widths: For each batch, where it begins in `order`, how many sentences it
            takes from there on, and to how many tokens they are padded.
    """

    order: np.ndarray
    segments: list
    starts: np.ndarray
    rows: np.ndarray
    widths: np.ndarray

    @property
    def tokens(self):
        """Number of places for tokens in all batches, padding included."""
        return int(self.rows @ self.widths)


def plan_batches(lengths, batch_tokens, buckets):
    """Sorts sentences into buckets by length and cuts each bucket into batches.

    A batch takes as many sentences of its bucket as `batch_tokens` allow. Those that are left and
    fill no batch go into the first one of the next wider bucket. So all batches of a width have the
    same number of rows, except for the last of the widest.

    Args:
        lengths: Tokens in each sentence, [sentences], all positive.
        batch_tokens: Most tokens in a batch, padding included.
        buckets: Most widths to use.

    Returns:
        A `Plan`.

    Raises:
        ValueError: If a sentence has more tokens than a batch.
    """
    lengths = np.asarray(lengths)
    if lengths.max() > batch_tokens:
        raise ValueError(
            "`batch_tokens` must be at least the length of the longest sentence. Received: "
            f"batch_tokens={batch_tokens}, and a sentence of {lengths.max()} tokens."
        )
    widths = choose_widths(lengths, buckets)
    bucket = np.searchsorted(widths, lengths)
    ends = np.cumsum(np.bincount(bucket, minlength=len(widths))).tolist()
    cuts, start = [], 0
    for width, end in zip(widths.tolist(), ends, strict=True):
        rows = batch_tokens // width
        while end - start >= rows:
            cuts.append((start, rows, width))
            start += rows
    if start < len(lengths):
        cuts.append((start, len(lengths) - start, int(widths[-1])))
    return Plan(
        np.argsort(bucket, kind="stable"),
        list(zip([0, *ends[:-1]], ends, strict=True)),
        *np.array(cuts, np.int64).T,
    )


def choose_widths(lengths, buckets):
    """Chooses the widths that need the least padding.

    The widths `w_1 < ... < w_n`, of which each sentence takes the first that holds it, minimise the
    sum of the widths over all sentences. Found exactly, by dynamic programming over the last width:
    `cost(n, w) = min over v < w of cost(n - 1, v) + w * (sentences longer than v, not than w)`.

    Args:
        lengths: Tokens in each sentence, [sentences].
        buckets: Most widths to choose.

    Returns:
        The widths in rising order; the last is the longest length.
    """
    longest = int(np.max(lengths))
    up_to = np.cumsum(np.bincount(lengths, minlength=longest + 1))  # sentences of <= w tokens
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
