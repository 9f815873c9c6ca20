"""Files of tensors in the format `safetensors`; the only module that imports that package.

A file begins with the length of its header in 8 bytes; the header is JSON and has the type, the
shape and the place of every tensor. It is checked against the size of the file before anything of
that size is allocated: the file may be cut, or made to harm.
"""

import json
import math
import os

import numpy as np
import safetensors

TYPES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8}  # bytes; the last is that of buffers of ids
LONGEST_HEADER = 100_000_000  # bytes, the limit of the format
FACTS = "__metadata__"


class SafetensorsFile:
    """The tensors of a file, read one by one.

    Args:
        path: The file, a `pathlib.Path`.

    Raises:
        ValueError: If it is damaged or has a type that is not read; the message names the file.
        OSError: If it cannot be read.

    Attributes:
        shapes: Dictionary from the names of the tensors to their shapes.
        types: Dictionary from the same names to `"F32"`, `"F16"`, `"BF16"` or `"I64"`.
    """

    def __init__(self, path):
        self.path = path
        entries = _read_header(path)
        self.types = {name: entry["dtype"] for name, entry in entries.items()}
        self.shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}

    def read(self, name):
        """Returns a tensor as a float32 array.

        Raises:
            ValueError: If there is none of that name, or the file is damaged.
        """
        if name not in self.shapes:
            raise ValueError(f"{self.path}: the tensor {name} is missing.")
        try:
            with safetensors.safe_open(self.path, framework="np") as file:
                return np.asarray(file.get_tensor(name), "float32")
        except safetensors.SafetensorError as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error


def _read_header(path):
    """The entries of the tensors, once every one of them is known to be inside the file."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        room = size - 8
        if len(start) < 8 or not 2 <= length <= min(room, LONGEST_HEADER):
            raise ValueError(
                f"{path} is damaged or no safetensors file: its header must fit into {size} bytes. "
                f"Received: {length if len(start) == 8 else 'no'} bytes of header."
            )
        content = file.read(length)
    try:
        entries = json.loads(content)
        entries.pop(FACTS, None)
        for name, entry in entries.items():
            _check_entry(path, name, entry)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} is damaged: its header is no table of tensors.") from error
    _check_places(path, entries, room - length)
    return entries


def _check_entry(path, name, entry):
    """Refuses a tensor of an unknown type, or whose place is not as large as its shape."""
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


def _check_places(path, entries, room):
    """Refuses tensors that overlap, leave the file or leave gaps in it."""
    places = sorted((*entry["data_offsets"], name) for name, entry in entries.items())
    last = 0
    for begin, end, name in places:
        if begin != last or end > room:
            what = "overlaps another tensor" if begin < last else "is not where the last one ends"
            what = f"ends after the file's {room} bytes of tensors" if end > room else what
            raise ValueError(f"{path} is damaged or cut: {name} {what} (bytes {begin} to {end}).")
        last = end
    if last != room:
        raise ValueError(f"{path} is damaged: {room - last} bytes at its end are of no tensor.")
