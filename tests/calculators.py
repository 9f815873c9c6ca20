"""Symbols for models that calculate, and the convolution of their units in loops."""

import numpy as np

LENGTHS = (7, 1, 5, 3)


def convolution(image, kernel):
    """Sums the products around each place of an image `[T, W, D]`; zeros are around the image."""
    rows, columns, _ = image.shape
    size, _, _, outputs = kernel.shape
    result = np.zeros((rows, columns, outputs))
    for row, column, y, x in np.ndindex(rows, columns, size, size):
        near, beside = row + y - size // 2, column + x - size // 2
        if 0 <= near < rows and 0 <= beside < columns:
            result[row, column] += image[near, beside] @ kernel[y, x]
    return result


def rows(symbols=5, seed=0):
    """Returns rows of symbols of several lengths, padded with 0."""
    rng = np.random.default_rng(seed)
    batch = np.zeros((len(LENGTHS), max(LENGTHS)), "int32")
    for row, length in zip(batch, LENGTHS, strict=True):
        row[:length] = rng.integers(1, symbols, length)
    return batch
