"""The weights in the folder of a checkpoint: one file of tensors, or several with an index.

An index is not trusted. It may only name files in its own folder, each tensor must be in the named
file and in no other, and the index must name every tensor in the files.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.checkpoint_hints import INDEX, PYTORCH, SAFETENSORS
from keras_transformer.pretrained.files.safetensors_files import SafetensorsFile
from keras_transformer.pretrained.files.torch_files import TorchFile

# The name of the file, and what reads it; the first that is there is read.
FORMATS: dict[str, Callable[..., Any]] = {SAFETENSORS: SafetensorsFile, PYTORCH: TorchFile}
MAP = "weight_map"  # key of the index; maps the names of tensors to the names of files


def open_tensors(folder) -> Any:
    """Returns the tensors in a folder, a `SafetensorsFile`, a `TorchFile` or `ShardedTensors`.

    Args:
        folder: A `CheckpointFolder`.

    Raises:
        ValueError: If there are none, or a file is damaged.
    """
    for name, read in FORMATS.items():
        path = folder.file(name)
        if path is not None:
            return read(path)
        if folder.file(name + INDEX) is not None:
            return ShardedTensors(folder, name + INDEX, read)
    where = folder.path if folder.repository is None else folder.repository
    names = " or ".join(FORMATS)
    raise ValueError(f"{where} must contain weights in {names}. It contains neither.")


class ShardedTensors:
    """The tensors of several files, which are read one by one; see `SafetensorsFile`.

    Args:
        folder: A `CheckpointFolder`.
        name: Name of the index file.
        read: Function or class that reads one of the files from its path.

    Raises:
        ValueError: If a file is missing or damaged, or the index does not fit the files; the error
            names the file.
        OSError: If a file cannot be read.

    Attributes:
        path: Path of the index.
        shapes, types: See `SafetensorsFile`.
    """

    def __init__(self, folder, name, read):
        self.path = folder.require(name)
        places = folder.json(name).get(MAP)
        if not isinstance(places, dict) or not places:
            raise ValueError(f"{self.path}: `{MAP}` must name the file of each tensor.")
        for name in places.values():
            self._check_name(name)
        files = {name: read(self._find(folder, name)) for name in dict.fromkeys(places.values())}
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

    def _find(self, folder, name):
        path = folder.file(name)
        if path is None:
            raise ValueError(f"{self.path} names the file {name}, which is missing.")
        return path

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
