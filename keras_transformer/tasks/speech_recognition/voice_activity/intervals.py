"""Intervals of a recording: lists of pairs of a first position and the position after the last.

All functions return intervals that are in order, not empty, and do not touch each other.
"""

from collections.abc import Sequence

import numpy as np

Intervals = list[tuple[int, int]]


def active(probabilities: Sequence[float], threshold: float, low: float) -> Intervals:
    """Returns the intervals in which probabilities are high.

    An interval begins with a probability of at least `threshold`, and ends before the first one
    below `low`, so that values between the two neither begin nor end it.

    Args:
        probabilities: Numbers from 0 to 1, `[N]`.
        threshold, low: Numbers from 0 to 1; `low` is at most `threshold`.
    """
    intervals, begin = [], None
    for position, probability in enumerate(probabilities):
        if begin is None and probability >= threshold:
            begin = position
        elif begin is not None and probability < low:
            intervals.append((begin, position))
            begin = None
    if begin is not None:
        intervals.append((begin, len(probabilities)))
    return bridged(intervals, 1)


def bridged(intervals: Intervals, gap: int) -> Intervals:
    """Joins intervals with less than `gap` positions between them, and those that overlap.

    Args:
        intervals: Intervals, ordered by their beginning.
        gap: Number of positions, at least 1: intervals that touch are joined.
    """
    joined: Intervals = []
    for begin, end in intervals:
        if joined and begin - joined[-1][1] < gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def padded(intervals: Intervals, padding: int, count: int) -> Intervals:
    """Returns intervals that are longer on both sides, within a recording.

    Args:
        intervals: Intervals.
        padding: Number of positions to add on each side.
        count: Number of positions of the recording.
    """
    longer = [(max(0, begin - padding), min(count, end + padding)) for begin, end in intervals]
    return bridged(longer, 1)


def aligned(intervals: Intervals, step: int, count: int) -> Intervals:
    """Returns intervals whose ends are multiples of a step, or the end of the recording.

    Args:
        intervals: Intervals. They become longer, never shorter.
        step: Number of positions.
        count: Number of positions of the recording.
    """
    longer = [
        (begin // step * step, min(count, -(-end // step) * step)) for begin, end in intervals
    ]
    return bridged(longer, 1)


def checked(intervals: Sequence, count: int) -> Intervals:
    """Returns what a detector has returned as a list of pairs of integers.

    Args:
        intervals: A list of pairs, or an array `[K, 2]`.
        count: Number of samples of the recording.

    Raises:
        ValueError: If they are not intervals of such a recording, in order.
    """
    try:
        pairs = np.asarray([*intervals]).reshape(-1, 2) if len(intervals) else np.zeros([0, 2], int)
        fits = np.asarray(pairs).dtype.kind in "iu" and len(pairs) == len(intervals)
    except (TypeError, ValueError):
        fits = False
    if fits:
        flat = pairs.ravel()
        fits = bool((pairs[:, 0] < pairs[:, 1]).all() and (np.diff(flat) >= 0).all())
        fits &= not len(flat) or flat[0] >= 0 and flat[-1] <= count
    if not fits:
        shown = repr(intervals)
        shown = shown if len(shown) < 100 else f"{shown[:100]}..."
        raise ValueError(
            "`voice_activity` must return pairs of integers: the first sample of speech and the "
            f"sample after the last one, in order, from 0 to {count}. Received: {shown}."
        )
    return bridged([tuple(pair) for pair in pairs.tolist()], 1)
