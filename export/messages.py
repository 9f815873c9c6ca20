"""Messages between two processes: fields and named arrays, through a pipe.

A message is a mark, the length of its header, the header in JSON, and the data of the arrays one
after the other. Nothing in it can run code when it is read, unlike a pickle.
"""

import json
import math
import struct
from typing import Any, BinaryIO

import numpy as np

MARK = b"message:"
LENGTH = struct.Struct(f"<{len(MARK)}sQ")  # begins every message
STRINGS = "strings"  # in place of a dtype


class NoMessageError(ValueError):
    """A pipe contains something else than a message."""


def send(stream: BinaryIO, fields: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
    """Writes a message.

    Args:
        stream: The pipe.
        fields: Dictionary of values that JSON can express.
        arrays: Dictionary of arrays or tensors of numbers, booleans or strings.

    Raises:
        OSError: If the other process has ended.
        TypeError: If an array contains other objects.
    """
    about, data = [], []
    for name, array in (arrays or {}).items():
        array = np.asarray(array)
        dtype, content = _strings(array) if array.dtype.kind in "OSU" else _numbers(array)
        about.append([name, dtype, array.shape, len(content)])
        data.append(content)
    header = json.dumps({"fields": fields, "arrays": about}).encode()
    for content in (LENGTH.pack(MARK, len(header)), header, *data):
        stream.write(content)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Reads a message; returns its fields and its arrays. Strings are objects, as bytes.

    Raises:
        EOFError: If the other process has ended.
        NoMessageError: If it has written something else.
    """
    begin = _read(stream, LENGTH.size)
    mark, length = LENGTH.unpack(begin)
    if mark != MARK:
        raise NoMessageError(repr(begin.decode("utf-8", "replace")))
    header = json.loads(_read(stream, length))
    arrays = {
        name: _array(dtype, shape, _read(stream, size))
        for name, dtype, shape, size in header["arrays"]
    }
    return header["fields"], arrays


def _read(stream, size):
    content = stream.read(size)
    if len(content) < size:
        raise EOFError("The message is incomplete.")
    return content


def _numbers(array):
    if array.dtype.kind not in "biufc":  # bfloat16, for example, whose name NumPy does not know
        raise TypeError(f"An array must contain numbers or strings. Received: {array.dtype}.")
    return array.dtype.str, array.tobytes()


def _strings(array):
    """Returns `STRINGS`, and the lengths of all strings followed by the strings."""
    strings = [
        string.encode() if isinstance(string, str) else string for string in array.ravel().tolist()
    ]
    lengths = np.array([len(string) for string in strings], np.int64)
    return STRINGS, b"".join([lengths.tobytes(), *strings])


def _array(dtype, shape, content):
    if dtype != STRINGS:
        return np.frombuffer(content, dtype).reshape(shape).copy()
    count = math.prod(shape)
    lengths = np.frombuffer(content, np.int64, count)
    ends = 8 * count + np.cumsum(lengths, dtype=np.int64)
    strings = np.empty(count, object)
    for number, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
        strings[number] = content[end - length : end]
    return strings.reshape(shape)
