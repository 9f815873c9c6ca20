"""Learned positions of patches, of a checkpoint's grid and resized to that of other images."""

import dataclasses
from collections.abc import Callable

import numpy as np


def cubic(size: int, new_size: int) -> np.ndarray:
    """Returns the matrix `[new_size, size]` of PyTorch's bicubic interpolation along an axis.

    Numbers at the edges are repeated; nothing is smoothed if the new axis is shorter.
    """
    weights = np.zeros((new_size, size))
    for place, center in enumerate(_centers(size, new_size)):
        first = int(np.floor(center)) - 1
        for neighbor in range(first, first + 4):
            column = min(max(neighbor, 0), size - 1)
            weights[place, column] += _kernel(center - neighbor, -0.75)
    return weights


def smooth_cubic(size: int, new_size: int) -> np.ndarray:
    """Returns the matrix `[new_size, size]` of PyTorch's bicubic interpolation with smoothing.

    If the new axis is shorter, each number is a mean over a proportionally larger neighbourhood.
    """
    scale = max(size / new_size, 1.0)
    distances = np.subtract.outer(_centers(size, new_size), np.arange(size)) / scale
    weights = np.vectorize(_kernel)(distances, -0.5)
    return weights / weights.sum(axis=1, keepdims=True)


def _centers(size, new_size):
    return (np.arange(new_size) + 0.5) * size / new_size - 0.5


def _kernel(distance, a):
    """The cubic convolution of Keys (1981) with its constant `a`."""
    x = abs(distance)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return a * (((x - 5) * x + 8) * x - 4) if x < 2 else 0.0


@dataclasses.dataclass(frozen=True)
class GridPositions:
    """The layout of positions `[1, 1 + P, D]` in a file, for other tokens or another grid.

    It has the methods of a `Layout`. Positions of patches are interpolated from the grid of the
    file to ours.

    Args:
        theirs_grid, ours_grid: Rows and columns of patches.
        tokens: Number of our tokens before the patches. Those after the class token have no
            positions.
        interpolation: Function from the old and the new size of an axis to the matrix that resizes
            it, `cubic` or `smooth_cubic`.

    Reference: Keys (1981), "Cubic Convolution Interpolation for Digital Image Processing".
    """

    theirs_grid: tuple[int, int]
    ours_grid: tuple[int, int]
    tokens: int
    interpolation: Callable[[int, int], np.ndarray]

    def shape(self, ours) -> tuple[int, ...]:
        """Returns the shape of the array in the file for a variable of the shape `ours`."""
        rows, columns = self.theirs_grid
        return 1, 1 + rows * columns, ours[-1]

    def ours(self, array, shape) -> np.ndarray:
        """Converts the array in the file to our layout, with the shape `shape`."""
        first, patches = array[0, :1], array[0, 1:]
        nothing = np.zeros((self.tokens - 1, shape[-1]), array.dtype)
        return np.concatenate([first, nothing, self._resized(patches)]).reshape(shape)

    def _resized(self, patches):
        if self.theirs_grid == self.ours_grid:
            return patches
        rows, columns = (
            self.interpolation(*sizes)
            for sizes in zip(self.theirs_grid, self.ours_grid, strict=True)
        )
        grid = patches.reshape(*self.theirs_grid, -1).astype("float64")
        grid = np.einsum("ri,cj,ijd->rcd", rows, columns, grid, optimize=True)
        return grid.reshape(-1, grid.shape[-1]).astype("float32")
