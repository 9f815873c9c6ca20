"""Packages that write and run .onnx files. The module does not import TensorFlow."""

import importlib
import importlib.util
import os
from typing import Any

from keras_transformer.installation import install_hint

EXTENSIONS = "onnxruntime_extensions"
DOMAIN = "ai.onnx.contrib"  # of the operators of onnxruntime-extensions
ERRORS_ONLY = 3  # severity from which ONNX Runtime logs


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


def require_extensions() -> None:
    """Checks that onnxruntime-extensions is installed, without loading it.

    In a process that has loaded TensorFlow Text, a graph with its operators ends the process.

    Raises:
        ValueError: If it is not installed; the message says how to install it.
    """
    if importlib.util.find_spec(EXTENSIONS) is None:
        raise ValueError(
            "ONNX files with strings need the package onnxruntime-extensions in version 0.15 or "
            f"newer. Install it with: {install_hint('onnx')}"
        )


def open_session(path: str | os.PathLike, num_threads: int, libraries: tuple = ()) -> Any:
    """Returns an `onnxruntime.InferenceSession` for processors.

    Args:
        path: The file.
        num_threads: Number of threads for an operator.
        libraries: Paths of libraries with further operators.

    Raises:
        Exception: If ONNX Runtime cannot read the file; its classes of errors have no common base.
    """
    runtime = load_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = num_threads, 1
    options.log_severity_level = ERRORS_ONLY
    for library in libraries:
        options.register_custom_ops_library(library)
    return runtime.InferenceSession(os.fspath(path), options, ["CPUExecutionProvider"])


def _load(package, version):
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ValueError(
            f"ONNX files need the package {package} in version {version} or newer. Install it "
            f"with: {install_hint('onnx')}"
        ) from error
