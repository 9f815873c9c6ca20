"""Files of tensors in the format `safetensors`; the only module that imports that package.

A file begins with the length of its header in 8 bytes. The header is JSON with the type, the shape
and the offsets of every tensor. It is checked against the size of the file before memory is
allocated, because the file may be incomplete or malicious. The index of several files is not
trusted either. It may only name files in its own folder, each tensor must be in the named file and
in no other, and the index must name every tensor in the files.
"""

import json
import math
import os
import pathlib
from typing import Any

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


MAP = "weight_map"  # key of the index; maps the names of tensors to the names of files


class ShardedSafetensors:
    """The tensors of several files, which are read one by one; see `SafetensorsFile`.

    Args:
        folder: A `CheckpointFolder`.
        name: Name of the index file.

    Raises:
        ValueError: If a file is missing or damaged, or the index does not fit the files; the error
            names the file.
        OSError: If a file cannot be read.

    Attributes:
        path: Path of the index.
        shapes, types: See `SafetensorsFile`.
    """

    def __init__(self, folder, name):
        self.path = folder.require(name)
        places = folder.json(name).get(MAP)
        if not isinstance(places, dict) or not places:
            raise ValueError(f"{self.path}: `{MAP}` must name the file of each tensor.")
        for name in places.values():
            self._check_name(name)
        files = {name: self._open(folder, name) for name in dict.fromkeys(places.values())}
        self._files = {tensor: files[name] for tensor, name in places.items()}
        self._check_places(files, places)
        self.shapes = {tensor: file.shapes[tensor] for tensor, file in self._files.items()}
        self.types = {tensor: file.types[tensor] for tensor, file in self._files.items()}

    def _check_name(self, name):
        plain = isinstance(name, str) and pathlib.PurePosixPath(name).name == name != ".."
        if not plain or "\\" in name or "\0" in name:
            raise ValueError(
                f"{self.path}: `{MAP}` must name files in its own folder. Received: {name!r}."
            )

    def _open(self, folder, name):
        path = folder.file(name)
        if path is None:
            raise ValueError(f"{self.path} names the file {name}, which is missing.")
        return SafetensorsFile(path)

    def _check_places(self, files, places):
        for tensor, name in places.items():
            if tensor not in files[name].shapes:
                raise ValueError(f"{self.path}: {tensor} must be in {name}. It is not there.")
        for name, file in files.items():
            for tensor in file.shapes:
                if tensor not in places:
                    raise ValueError(f"{self.path} does not name {tensor}, which is in {name}.")
                if places[tensor] != name:
                    raise ValueError(
                        f"{self.path}: {tensor} must be in one file. It is in {places[tensor]} and "
                        f"in {name}."
                    )

    def read(self, name) -> np.ndarray:
        """Returns a tensor as a float32 array.

        Raises:
            ValueError: If there is no tensor of this name, or its file is damaged.
        """
        if name not in self._files:
            raise ValueError(f"{self.path}: the tensor {name} is missing.")
        return self._files[name].read(name)


WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"  # index of weights in several files
PICKLED = "pytorch_model.bin"
CONVERSION = (
    'python -c "import sys; from transformers import {kind} as M; '
    'M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])" {path}'
)


def open_tensors(folder, kind, conversion=CONVERSION) -> Any:
    """Returns the tensors in a folder, a `SafetensorsFile` or `ShardedSafetensors`.

    Args:
        folder: A `CheckpointFolder`.
        kind: Name of the class of `transformers` that reads such a folder.
        conversion: Command that converts a pickle, perhaps with places for `kind` and `path`.

    Raises:
        ValueError: If there are none, or only in another format; the error names a remedy.
    """
    path = folder.file(WEIGHTS)
    if path is not None:
        return SafetensorsFile(path)
    if folder.file(INDEX) is not None:
        return ShardedSafetensors(folder, INDEX)
    if folder.file(PICKLED) is not None:
        raise ValueError(
            f"{folder.path / PICKLED} was not read: it is a pickle, and reading a pickle may run "
            "any program. If you trust it, convert it: "
            f"{conversion.format(kind=kind, path=folder.path)}"
        )
    repository, copy = folder.repository, folder.own_copy
    if repository is not None:  # of which no pickle was downloaded
        raise ValueError(
            f"{repository.name} has no weights in the format safetensors, the only one that is "
            f"read. A {PICKLED} is a pickle, and reading a pickle may run any program. If you "
            f"trust it, download it with `{repository.command}`, convert it with "
            f"`{conversion.format(kind=kind, path=copy)}`, and name the folder {copy} instead."
        )
    folder.require(WEIGHTS)
