"""Marian's `.bin`: a table of names, types and shapes, then the arrays, aligned to 256 bytes."""

import collections
import math
import struct

import numpy as np

from keras_transformer.files import write_bytes
from keras_transformer.pretrained.files.marian.arrays import MULTIPLIER, SETTINGS, TABLE, Quantized

VERSION, ALIGNMENT = 1, 256
FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101
# INTGEMM8 is Marian's number of the type; the browsers' fork writes the last number instead.
TYPES = {FLOAT32: "float32", INT8: "int8", INTGEMM8: "intgemm8", 0x10001: "intgemm8"}
WIDTHS = {"float32": 4, "int8": 1, "intgemm8": 1}
MULTIPLIER_BYTES = 4
MOST_AXES = 32  # limit of old versions of NumPy


def read_bin(path) -> dict[str, np.ndarray | Quantized]:
    """Returns a dictionary from names to the arrays of a file; those of intgemm8 are `Quantized`.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is damaged or of another format; the error is one line that names the
            array.
    """
    content = path.read_bytes()
    reader = _Reader(content, path)
    version, count = reader.numbers("Q", 2)
    if version != VERSION:
        raise ValueError(f"{path} is damaged or not a .bin file of Marian of version {VERSION}.")
    headers = [reader.numbers("Q", 4) for _ in range(reader.count(count, 32))]
    names = [reader.name(header[0]) for header in headers]
    if len(set(names)) < len(names):
        raise ValueError(f"{path} is damaged: {_twice(names)} occurs twice.")
    shapes = [
        reader.numbers("i", reader.count(rank, 4)) for _, _, rank, _ in headers
    ]  # all shapes come before the arrays
    reader.take(*reader.numbers("Q", 1))
    return {
        name: _array(name, number, shape, reader.take(length, name), path)
        for name, (_, number, _, length), shape in zip(names, headers, shapes, strict=True)
    }


def _twice(names):
    return collections.Counter(names).most_common(1)[0][0]


class _Reader:
    """Reads the bytes of a file in order; reading beyond the end is an error."""

    def __init__(self, content, path):
        self.content, self.path, self.place = memoryview(content), path, 0

    def take(self, length, what="its table"):
        end = self.place + length
        if end > len(self.content):
            raise ValueError(
                f"{self.path} is damaged or incomplete: {what} ends at byte {end}, the file at "
                f"byte {len(self.content)}."
            )
        content, self.place = self.content[self.place : end], end
        return content

    def count(self, number, size):
        """Returns a number of items after checking that the file has enough bytes for them."""
        if number * size > len(self.content) - self.place:
            raise ValueError(
                f"{self.path} is damaged or incomplete: its table has {number} entries of {size} "
                "bytes."
            )
        return number

    def numbers(self, letter, count):
        form = f"<{count}{letter}"
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def name(self, length):
        try:
            return str(self.take(length, "a name"), "utf-8").removesuffix("\0")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is damaged: a name is not UTF-8.") from error


def _array(name, number, shape, content, path):
    kind = TYPES.get(number)
    if kind is None:
        known = ", ".join(f"{kind} ({number:#x})" for number, kind in TYPES.items())
        raise ValueError(f"{path}: {name} must be one of {known}. Received: type {number:#x}.")
    if len(shape) > MOST_AXES:
        raise ValueError(
            f"{path} is damaged: {name} has {len(shape)} axes, at most {MOST_AXES} are "
            "possible. Copy or download it again."
        )
    size = math.prod(shape)
    needed = size * WIDTHS[kind] + (MULTIPLIER_BYTES if kind == "intgemm8" else 0)
    if min(shape, default=1) < 1 or needed > len(content):
        raise ValueError(
            f"{path} is damaged: {name} has {len(content)} bytes. Received: shape {shape}, {kind}, "
            f"which needs {needed}."
        )
    if kind != "intgemm8":
        dtype = "<f4" if kind == "float32" else np.int8
        return np.frombuffer(content, dtype, size).reshape(shape)
    return _quantized(name, shape, content, path)


def _quantized(name, shape, content, path):
    values = np.frombuffer(content, np.int8, math.prod(shape))
    multiplier = np.frombuffer(content, "<f4", 1, len(values))[0]
    if len(shape) != 2 or not 0 < multiplier < math.inf:
        raise ValueError(
            f"{path}: {name} must be a matrix with a multiplier above 0 after it. "
            f"Received: shape {shape}, multiplier {multiplier}."
        )
    if _is_transposed(name):
        return Quantized(values.reshape(shape[::-1]).T, multiplier)
    return Quantized(values.reshape(shape), multiplier)


def _is_transposed(name):
    """Returns whether a matrix of int8 is stored `[out, in]`, with the shape `[in, out]`."""
    return not name.endswith((TABLE, MULTIPLIER))


def write_bin(path, arrays) -> None:
    """Writes a file for Marian or, with `Quantized` arrays, for the browsers' fork of Marian.

    Args:
        path: The file, which is written atomically.
        arrays: Dictionary from names to float32, `Quantized`, and int8 for the settings.
    """
    names = sorted(arrays, key=lambda name: (name == SETTINGS, name))
    encoded = [f"{name}\0".encode() for name in names]
    items = [_item(name, arrays[name]) for name in names]
    table = [struct.pack("<2Q", VERSION, len(names))]
    for name, (number, shape, content) in zip(encoded, items, strict=True):
        table.append(struct.pack("<4Q", len(name), number, len(shape), len(content)))
    table += encoded
    table += [struct.pack(f"<{len(shape)}i", *shape) for _, shape, _ in items]
    size = sum(map(len, table)) + 8  # including the length of the padding
    padding = -size % ALIGNMENT
    table.append(struct.pack("<Q", padding) + bytes(padding))
    write_bytes(path, b"".join([*table, *(content for *_, content in items)]))


def _item(name, array):
    """Returns the number of the type, the shape and the bytes of an array."""
    if isinstance(array, Quantized):
        stored = array.values.T if _is_transposed(name) else array.values
        multiplier = np.array(array.multiplier, "<f4").tobytes()
        return INTGEMM8, array.shape, _padded(stored.tobytes() + multiplier)
    if array.dtype == np.float32:
        return FLOAT32, array.shape, _padded(array.astype("<f4").tobytes())
    # The settings come last without padding, as in Marian.
    return INT8, array.shape, array.tobytes()


def _padded(content):
    return content + bytes(-len(content) % ALIGNMENT)
