"""Files of tensors in the format `safetensors`; the only module that imports that package.

A file begins with the length of its header in 8 bytes. The header is JSON with the type, the shape
and the offsets of every tensor. It is checked against the size of the file before memory is
allocated, because the file may be incomplete or malicious.
"""

import json
import math
import os

import numpy as np
import safetensors

TYPES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8}  # bytes; I64 occurs in buffers of ids
LONGEST_HEADER = 100_000_000  # bytes, the limit of the format
METADATA = "__metadata__"


class SafetensorsFile:
    """The tensors of a file, which are read one by one.

    Args:
        path: The file, a `pathlib.Path`.

    Raises:
        ValueError: If the file is damaged or has tensors of an unsupported type; the error names
            the file.
        OSError: If the file cannot be read.

    Attributes:
        shapes: Dictionary from the names of the tensors to their shapes.
        types: Dictionary from these names to `"F32"`, `"F16"`, `"BF16"` or `"I64"`.
    """

    def __init__(self, path):
        self.path = path
        entries = _read_header(path)
        self.types = {name: entry["dtype"] for name, entry in entries.items()}
        self.shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}

    def read(self, name) -> np.ndarray:
        """Returns a tensor as a float32 array.

        Raises:
            ValueError: If there is no tensor of this name, or the file is damaged.
        """
        if name not in self.shapes:
            raise ValueError(f"{self.path}: the tensor {name} is missing.")
        try:
            with safetensors.safe_open(self.path, framework="np") as file:
                return np.asarray(file.get_tensor(name), "float32")
        except safetensors.SafetensorError as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error


def _read_header(path):
    """Returns the entries of the tensors after checking that all of them are inside the file."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        available = size - 8
        if len(start) < 8 or not 2 <= length <= min(available, LONGEST_HEADER):
            raise ValueError(
                f"{path} is damaged or not a safetensors file: its header must fit into {size} "
                f"bytes. Received: {length if len(start) == 8 else 'no'} bytes of header."
            )
        content = file.read(length)
    try:
        entries = json.loads(content)
        entries.pop(METADATA, None)
        for name, entry in entries.items():
            _check_entry(path, name, entry)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} is damaged: its header is not a table of tensors.") from error
    _check_offsets(path, entries, available - length)
    return entries


def _check_entry(path, name, entry):
    """Refuses a tensor of an unsupported type, or whose size does not fit its shape."""
    kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in TYPES:
        raise ValueError(
            f"{path}: tensors must have the type {', '.join(TYPES)}. Received: {name} of {kind!r}."
        )
    numbers = [*shape, begin, end]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(
            f"{path} is damaged: sizes must be whole numbers of at least 0. "
            f"Received: {name} of shape {shape}, bytes {begin} to {end}."
        )
    if math.prod(shape) * TYPES[kind] != end - begin:
        raise ValueError(
            f"{path} is damaged: {name} must have as many bytes as its shape {shape} of {kind} "
            f"needs. Received: bytes {begin} to {end}."
        )


def _check_offsets(path, entries, size):
    """Refuses tensors that overlap, exceed the file or leave gaps in it."""
    places = sorted((*entry["data_offsets"], name) for name, entry in entries.items())
    last = 0
    for begin, end, name in places:
        if begin != last or end > size:
            what = "overlaps another tensor" if begin < last else "leaves a gap before it"
            what = f"ends after the file's {size} bytes of tensors" if end > size else what
            raise ValueError(
                f"{path} is damaged or incomplete: {name} {what} (bytes {begin} to {end})."
            )
        last = end
    if last != size:
        raise ValueError(f"{path} is damaged: {size - last} bytes at its end belong to no tensor.")
