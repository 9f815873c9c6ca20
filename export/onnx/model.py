"""A model in an .onnx file, run by ONNX Runtime."""

import os
import pathlib
from typing import Any

import numpy as np

from keras_transformer.export.onnx.packages import load_runtime, open_session
from keras_transformer.export.onnx.packed import unpack
from keras_transformer.export.runtime import check_threads, reason


class OnnxModel:
    """A model in an .onnx file that `export_onnx` has written.

    Any number of threads may run it at the same time.

    Args:
        path: The file.
        num_threads: Number of threads that ONNX Runtime may use for an operator. `None`: 1.

    Raises:
        ValueError: If onnxruntime is missing, the file was not written by `export_onnx` or is
            damaged, or the number is out of range.

    Attributes:
        path: The file, a `pathlib.Path`.
        metadata: The metadata, a dictionary.
        tokenizers: The `Tokenizers`; `None` if the model does not process text.
        inputs, outputs: Names of the inputs and outputs.
    """

    def __init__(self, path: str | os.PathLike, num_threads: int | None = None):
        num_threads = 1 if num_threads is None else num_threads
        check_threads(num_threads=num_threads)
        self.path = pathlib.Path(path)
        load_runtime()
        try:
            self._session = open_session(path, num_threads)
        except Exception as error:  # its classes of errors have no common base
            raise ValueError(f"{path} cannot be read by ONNX Runtime: {reason(error)}") from error
        properties = self._session.get_modelmeta().custom_metadata_map
        self.metadata, self.tokenizers = unpack(self.path, properties)
        self.inputs = tuple(tensor.name for tensor in self._session.get_inputs())
        self.outputs = tuple(tensor.name for tensor in self._session.get_outputs())

    def run(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the outputs of the model by name.

        Args:
            **inputs: Arrays by the names of the inputs, with at least one row.
        """
        return dict(zip(self.outputs, self._session.run(None, inputs), strict=True))

    def run_values(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Returns the outputs by name as values of ONNX Runtime, which have a method `numpy`.

        Args:
            inputs: Arrays by the names of the inputs, or such values, which are not copied.
        """
        kind = load_runtime().OrtValue
        given = {
            name: value if isinstance(value, kind) else kind.ortvalue_from_numpy(value)
            for name, value in inputs.items()
        }
        found = self._session.run_with_ort_values(self.outputs, given)
        return dict(zip(self.outputs, found, strict=True))
