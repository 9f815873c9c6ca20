"""Alignment of tokens and sound: the path of dynamic time warping through attention weights."""

import numpy as np

MEDIAN = 7  # positions of the median filter, as in OpenAI's Whisper


def begins_of(weights: np.ndarray, prompt: int, width: int = MEDIAN) -> np.ndarray:
    """Returns the position at which each token begins, and at which the last one ends.

    The weights of each head are standardised over the tokens and smoothed over the positions. The
    path through their mean assigns positions to tokens, in order.

    Args:
        weights: Attention weights of some heads, `[H, T, S]`: token, position. T counts the prompt,
            the tokens of the text and the end.
        prompt: Number of tokens before the one that predicts the first token of the text.
        width: Positions of the median filter, odd.

    Returns:
        int `[N + 1]` for the N tokens of the text.

    Reference: `find_alignment` of OpenAI's Whisper, `whisper/timing.py`.
    """
    weights = np.asarray(weights, np.float64)
    weights = weights / weights.sum(axis=2, keepdims=True)  # among the positions that are left
    spread = weights.std(axis=1, keepdims=True)
    weights = (weights - weights.mean(axis=1, keepdims=True)) / np.maximum(spread, 1e-12)
    matrix = median_filter(weights, width).mean(axis=0)[prompt:-1]  # [N + 1, S]
    rows, columns = warped(-matrix)
    first = np.r_[True, np.diff(rows) > 0]
    return columns[first]


def median_filter(values: np.ndarray, width: int) -> np.ndarray:
    """Returns the median of `width` values around each, over the last axis, mirrored at the ends.

    Rows of at most `width // 2` values are returned as they are.

    Args:
        values: `[..., S]`.
        width: Odd number.
    """
    half = width // 2
    if values.shape[-1] <= half:
        return values
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(half, half)], mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1), axis=-1)


def warped(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the path of least cost from the first to the last cell, in both orders.

    A step goes to the next row, the next column, or both. Of equal costs, the step to the next
    column is preferred.

    Args:
        costs: `[N, S]`.

    Returns:
        Rows and columns of the cells of the path, int `[P]` each.

    Reference: Sakoe and Chiba (1978), "Dynamic programming algorithm optimization for spoken word
        recognition".
    """
    count, width = costs.shape
    totals = np.full([count + 1, width + 1], np.inf)
    totals[0, 0] = 0.0
    for diagonal in range(2, count + width + 1):  # cells whose row and column add up to it
        rows = np.arange(max(1, diagonal - width), min(count, diagonal - 1) + 1)
        columns = diagonal - rows
        best = np.minimum(totals[rows - 1, columns - 1], totals[rows - 1, columns])
        best = np.minimum(best, totals[rows, columns - 1])
        totals[rows, columns] = costs[rows - 1, columns - 1] + best
    path, row, column = [], count, width
    while row > 0 or column > 0:
        path.append((row - 1, column - 1))
        both = totals[row - 1, column - 1] if min(row, column) > 0 else np.inf
        down = totals[row - 1, column] if row > 0 else np.inf
        right = totals[row, column - 1] if column > 0 else np.inf
        if both < down and both < right:
            row, column = row - 1, column - 1
        elif down < both and down < right:
            row -= 1
        else:
            column -= 1
    rows, columns = np.array(path[::-1]).T
    return rows, columns
