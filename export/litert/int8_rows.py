"""A matrix in int8: one scale per row."""

import numpy as np

LARGEST = 127


def scales_of_rows(matrix):
    """Returns what a step of int8 stands for in each row of `matrix` `[N, M]`: `[N]`, float64."""
    scales = np.abs(matrix).max(axis=1).astype(np.float64) / LARGEST
    return np.where(scales == 0, 1.0, scales)


def codes_of_rows(matrix, scales):
    """Returns `matrix` `[N, M]` in units of `scales` `[N]`, rounded, halves away from 0: int8."""
    return (np.sign(matrix) * np.floor(np.abs(matrix / scales[:, None]) + 0.5)).astype(np.int8)
