"""Reading of any number of recordings, of which at most an hour is in memory at a time."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

HELD_SECONDS = 3600.0  # of sound in a group, unless one recording is longer


def in_groups(
    recordings: list, read: Callable[[Any, str], np.ndarray], most: float
) -> Iterator[list[np.ndarray]]:
    """Yields lists of the samples of recordings, in order.

    All recordings are read before the first list is yielded, so that an error comes before anything
    is computed; those of later lists are then read again.

    Args:
        recordings: List of recordings.
        read: Function from a recording, and its name in errors, to its samples `[N]`.
        most: Maximum number of samples in a list, unless a single recording has more.
    """
    named = [(one, f"recording {number}") for number, one in enumerate(recordings, start=1)]
    group, lengths, size = [], [], 0
    for one in named:
        samples = read(*one)
        lengths.append(len(samples))
        size += len(samples)
        if not group or size <= most:
            group.append(samples)
    begin = 0
    while group:
        yield group
        begin += len(group)
        group, size = [], 0
        for one, length in zip(named[begin:], lengths[begin:], strict=True):
            size += length
            if group and size > most:
                break
            group.append(read(*one))
