"""The content of a Marian model file: arrays by name, and the settings among them."""

import math
import typing

import numpy as np

SETTINGS = "special:model.yml"
MULTIPLIER = "_QuantMultA"  # ends the name of what the inputs of a product are multiplied with
TABLE = "Wemb"
OUTPUT = "none"  # Marian's name for the transposed table as a factor


class Quantized(typing.NamedTuple):
    """A matrix in 8 bits.

    Attributes:
        values: int8 `[in, out]`; of the table `[V, D]`.
        multiplier: float32; the matrix is `values / multiplier`.
    """

    values: np.ndarray
    multiplier: np.float32

    @classmethod
    def of(cls, matrix):
        """Returns a matrix of floats with its largest value at 127."""
        largest = np.abs(matrix).max(initial=0)
        multiplier = np.float32(127) / np.float32(largest or 1)
        values = np.clip(np.rint(matrix * multiplier), -127, 127).astype(np.int8)
        return cls(values, multiplier)

    @property
    def shape(self):
        """Shape of the matrix."""
        return self.values.shape

    def floats(self):
        """Returns the matrix in float32."""
        return self.values / np.float32(self.multiplier)


def in_floats(arrays, path):
    """Returns the weights alone, in float32, without the multipliers of a quantised file.

    Args:
        arrays: From `read`.
        path: The file, for errors.

    Raises:
        ValueError: If a multiplier is missing or the file has a weight that is no number.
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
            raise ValueError(f"{path}: {name} has values that are no numbers or infinite.")
    return weights


def check_multipliers(arrays, path):
    """Refuses a file with multipliers of activations unless each product has a valid one.

    A file of dynamic ranges has none at all.

    Raises:
        ValueError: With the name of the one that is missing or wrong.
    """
    found = {name for name in arrays if name.endswith(MULTIPLIER)}
    if not found:
        return
    quantized = {name for name, array in arrays.items() if isinstance(array, Quantized)} - found
    wanted = {f"{name}{MULTIPLIER}" for name in quantized}
    if TABLE in quantized:
        wanted.add(OUTPUT + MULTIPLIER)
    for name in sorted(wanted - found):
        raise ValueError(f"{path}: the multiplier {name} is missing.")
    for name in sorted(found):
        array = arrays[name].floats() if isinstance(arrays[name], Quantized) else arrays[name]
        if array.size != 1 or not 0 < float(array.flat[0]) < math.inf:
            raise ValueError(f"{path}: the multiplier {name} must be one number above 0.")
