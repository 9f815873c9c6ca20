"""Marian model files of both formats."""

from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.pretrained.files.marian.binary import read_bin
from keras_transformer.pretrained.files.marian.npz import read_npz

READERS = {".npz": read_npz, ".bin": read_bin}


class Arrays:
    """Arrays in memory with the interface of a `SafetensorsFile`.

    Args:
        path: The file, for messages.
        arrays: Dictionary from names to float32 arrays.
    """

    def __init__(self, path, arrays):
        self.path, self._arrays = path, arrays
        self.shapes = {name: array.shape for name, array in arrays.items()}

    def read(self, name) -> np.ndarray:
        """Returns an array."""
        return self._arrays[name]


def read(path) -> dict[str, Any]:
    """Returns a dictionary from names to the arrays of a `.npz` or `.bin` file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is damaged or of another format.
    """
    path = Path(path)
    if path.suffix not in READERS:
        raise ValueError(f"`path` must end in {' or '.join(READERS)}. Received: path={path}.")
    return READERS[path.suffix](path)
