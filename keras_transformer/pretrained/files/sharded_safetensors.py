"""Tensors in several files of the format `safetensors`, with an index from tensors to files.

The index is not trusted. It is checked that it only names files in its own folder, that each tensor
is in the named file and in no other, and that the index names every tensor in the files.
"""

import pathlib

import numpy as np

from keras_transformer.pretrained.files.safetensors_file import SafetensorsFile

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
