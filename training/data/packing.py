"""Packing of several texts into a row of tokens, which avoids padding."""

from typing import Any

import numpy as np


def pack_texts(texts, max_length) -> tuple[Any, int]:
    """Packs texts into rows of at most `max_length` tokens.

    A longer text is cut into parts of `max_length` tokens, each of which fills a row, and a
    remainder. Texts and parts are placed from the longest to the shortest, each into the fullest
    row with enough space; the same texts always give the same rows.

    Args:
        texts: A ragged `Column` of token ids; each text ends in `eos_id`.
        max_length: Maximum length of a row, in tokens.

    Returns:
        A `Column` of the rows, and the number of texts that were cut.
    """
    values, lengths = texts.values, texts.lengths
    counts = -(-lengths // max_length)  # number of parts
    of_text = np.repeat(np.arange(len(lengths)), counts)
    before = max_length * (np.arange(len(of_text)) - np.repeat(np.cumsum(counts) - counts, counts))
    starts = (np.cumsum(lengths) - lengths)[of_text] + before
    sizes = np.minimum(lengths[of_text] - before, max_length)
    rows = best_fit(sizes, max_length)
    order = np.argsort(rows, kind="stable")
    starts, sizes, rows = starts[order], sizes[order], rows[order]
    ends = np.cumsum(sizes)
    places = np.arange(sizes.sum()) + np.repeat(starts - ends + sizes, sizes)
    totals = np.bincount(rows, weights=sizes).astype(np.int64)
    return type(texts)(values[places], totals), int(np.count_nonzero(counts > 1))


def best_fit(sizes, capacity) -> np.ndarray:
    """Packs items into bins by best fit, the largest first: each into the fullest bin it fits into.

    Args:
        sizes: Sizes of the items, integers `[items]`, from 1 to `capacity`.
        capacity: Capacity of a bin.

    Returns:
        Number of the bin of each item, `[items]`, counted from 0.
    """
    bins = np.empty(len(sizes), np.int64)
    by_space = [[] for _ in range(capacity + 1)]
    known, count = 0, 0  # bit s of `known`: there is a bin with space s left
    for item in np.argsort(-sizes, kind="stable").tolist():
        size = int(sizes[item])
        fitting = known >> size << size
        if fitting:
            space = (fitting & -fitting).bit_length() - 1
            chosen = by_space[space].pop()
            if not by_space[space]:
                known &= ~(1 << space)
        else:
            chosen, space, count = count, capacity, count + 1
        bins[item] = chosen
        by_space[space - size].append(chosen)
        known |= 1 << (space - size)
    return bins
