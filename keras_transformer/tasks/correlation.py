"""Rank correlation of numbers."""

import numpy as np


def spearman(ours, theirs) -> float:
    """Returns Spearman's rank correlation, from -100 to 100; equal values share their mean rank.

    It is 0 if all values of one side are equal, for which it is not defined.
    """
    first, second = (_ranks(np.asarray(values)) for values in (ours, theirs))
    first, second = first - first.mean(), second - second.mean()
    spread = np.sqrt((first**2).sum() * (second**2).sum())
    return 100 * float((first * second).sum() / spread) if spread else 0.0


def _ranks(values):
    """Returns the rank of each value, counted from 1; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]
