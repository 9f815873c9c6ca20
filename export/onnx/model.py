"""A model in an .onnx file, run by ONNX Runtime."""

import importlib
import os
import pathlib
from typing import Any

import numpy as np

from keras_transformer.export.onnx.packed import unpack
from keras_transformer.export.runtime import check_threads, reason
from keras_transformer.installation import install_hint

ERRORS_ONLY = 3  # severity from which ONNX Runtime logs


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
        runtime = load_runtime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = num_threads, 1
        options.log_severity_level = ERRORS_ONLY
        providers = ["CPUExecutionProvider"]
        try:
            self._session = runtime.InferenceSession(str(path), options, providers)
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


def load_runtime() -> Any:
    """Returns the module `onnxruntime`.

    Raises:
        ValueError: If it is not installed; the message says how to install it.
    """
    return _load("onnxruntime", "1.31")


def load_onnx() -> Any:
    """Returns the module `onnx`, which writes files.

    Raises:
        ValueError: If it is not installed; the message says how to install it.
    """
    return _load("onnx", "1.18")


def _load(package, version):
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ValueError(
            f"ONNX files need the package {package} in version {version} or newer. Install it "
            f"with: {install_hint('onnx')}"
        ) from error
