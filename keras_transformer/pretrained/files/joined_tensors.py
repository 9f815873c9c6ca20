"""Tensors of several folders as one set of tensors."""

import numpy as np


class JoinedTensors:
    """The tensors of a checkpoint, and those of its subfolders under names such as `2_Dense/bias`.

    Args:
        tensors: Those of the checkpoint, such as a `SafetensorsFile`.
        others: Dictionary from the names of subfolders to their tensors.

    Attributes:
        path: File or folder of the checkpoint's own tensors, for messages.
        shapes, types: Dictionaries from the names of the tensors.
    """

    def __init__(self, tensors, others):
        self.path = tensors.path
        self._files = dict.fromkeys(tensors.shapes, tensors)
        self._names = {name: name for name in tensors.shapes}
        for folder, file in others.items():
            for name in file.shapes:
                self._files[f"{folder}/{name}"], self._names[f"{folder}/{name}"] = file, name
        self.shapes = {key: self._files[key].shapes[name] for key, name in self._names.items()}
        self.types = {key: self._files[key].types[name] for key, name in self._names.items()}

    def read(self, name) -> np.ndarray:
        """Returns a tensor as a float32 array.

        Raises:
            ValueError: If there is no tensor of this name, or its file is damaged.
        """
        if name not in self._files:
            raise ValueError(f"{self.path}: the tensor {name} is missing.")
        return self._files[name].read(self._names[name])
