"""The content of a Marian model file: arrays by name, including the settings."""

import math
import typing

import numpy as np

SETTINGS = "special:model.yml"
MULTIPLIER = "_QuantMultA"  # suffix of the factor that quantises the inputs of a product
TABLE = "Wemb"
OUTPUT = "none"  # Marian's name for the transposed table as a factor


class Quantized(typing.NamedTuple):
    """A matrix in 8 bits.

    Attributes:
        values: int8 `[in, out]`; for the embedding table `[V, D]`.
        multiplier: float32. The matrix is `values / multiplier`.
    """

    values: np.ndarray
    multiplier: np.float32

    @classmethod
    def of(cls, matrix) -> "Quantized":
        """Quantises a matrix of floats, whose largest absolute value becomes 127."""
        largest = np.abs(matrix).max(initial=0)
        multiplier = np.float32(127) / np.float32(largest or 1)
        values = np.clip(np.rint(matrix * multiplier), -127, 127).astype(np.int8)
        return cls(values, multiplier)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the matrix."""
        return self.values.shape

    def floats(self) -> np.ndarray:
        """Returns the matrix in float32."""
        return self.values / np.float32(self.multiplier)


def in_floats(arrays, path) -> dict[str, np.ndarray]:
    """Returns only the weights, in float32, without the multipliers of a quantised file.

    Args:
        arrays: Result of `read`.
        path: The file, for errors.

    Raises:
        ValueError: If a multiplier is missing, or a weight is not finite.
    """
    check_multipliers(arrays, path)
    weights = {}
    for name, array in arrays.items():
        if name == SETTINGS or name.endswith(MULTIPLIER):
            continue
        weights[name] = array.floats() if isinstance(array, Quantized) else array
        if weights[name].dtype != np.float32:
            raise ValueError(f"{path}: {name} must be float32 or int8 with a multiplier.")
        if not np.isfinite(weights[name]).all():
            raise ValueError(f"{path}: {name} contains NaN or infinite values.")
    return weights


def check_multipliers(arrays, path) -> None:
    """Requires that either all products have a valid multiplier of activations, or none has one.

    A file without any is quantised with dynamic ranges.

    Raises:
        ValueError: If a multiplier is missing or not valid; the error names it.
    """
    multipliers = {name for name in arrays if name.endswith(MULTIPLIER)}
    if not multipliers:
        return
    quantized = {name for name, array in arrays.items() if isinstance(array, Quantized)}
    quantized -= multipliers
    wanted = {f"{name}{MULTIPLIER}" for name in quantized}
    if TABLE in quantized:
        wanted.add(OUTPUT + MULTIPLIER)
    for name in sorted(wanted - multipliers):
        raise ValueError(f"{path}: the multiplier {name} is missing.")
    for name in sorted(multipliers):
        array = arrays[name].floats() if isinstance(arrays[name], Quantized) else arrays[name]
        if array.size != 1 or not 0 < float(array.flat[0]) < math.inf:
            raise ValueError(f"{path}: the multiplier {name} must be one number above 0.")
