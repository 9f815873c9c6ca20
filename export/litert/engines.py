"""Engines that run the signatures of a .tflite file: LiteRT's two runtimes for Python.

Only this module imports `ai_edge_litert`.
"""

import contextlib
import functools
import math
import os
import sys
import weakref
from typing import Any

import numpy as np

from keras_transformer.free_memory import return_large_blocks
from keras_transformer.installation import install_hint
from keras_transformer.native_code import filtered_log

# LiteRT's name for a cache of packed weights that is not a file; it needs an anonymous file.
IN_MEMORY = ":memory" if sys.platform.startswith("linux") else ""
DESCRIPTORS = "/proc/self/fd"  # folder of the open files of the process
# Bytes of a file whose packed weights are worth a second loading of the model, and whose loops use
# blocks of memory that the C library should not keep.
LARGE = 2**23
# Ways to run a file: compiled, which needs builtin operators; interpreted; and interpreted with the
# operators of TensorFlow Text.
COMPILED, INTERPRETED, INTERPRETED_WITH_TEXT = "compiled", "interpreted", "interpreted_with_text"
# Beginnings of lines with which LiteRT reports what it has found, such as accelerators.
REPORTS = (b"INFO: ", b"WARNING: [", "└".encode())


def open_engine(path: str | os.PathLike, how: str, num_threads: int = 1) -> Any:
    """Returns an engine of a file.

    Args:
        path: The file.
        how: `COMPILED`, `INTERPRETED` or `INTERPRETED_WITH_TEXT`.
        num_threads: Number of threads that LiteRT may use in a call.

    Raises:
        ValueError: If ai-edge-litert is missing or LiteRT cannot read the file.
        RuntimeError: If LiteRT cannot read the file.
    """
    if how == COMPILED:
        return CompiledEngine(path, num_threads)
    operators = _text_operators() if how == INTERPRETED_WITH_TEXT else None
    return InterpretedEngine(path, num_threads, operators)


def _text_operators():
    from keras_transformer.export.litert.fast_tokenizer import operators  # imports TensorFlow

    return operators()


class CompiledEngine:
    """A file in LiteRT's runtime for compiled models, in which signatures share their weights.

    The kernels of a processor need the weights in another order. An interpreter stores such a copy
    for every signature and loop; here they share one.

    LiteRT's Python package holds Python's lock during a call: other threads wait for its end. See
    `open_engines` of the module `parallel` for calls at the same time.

    Args:
        path: The file.
        num_threads: Number of threads that LiteRT may use in a call.
        weights: The `PackedWeights` of this file, which several engines may share. `None`: the
            engine has its own.

    Raises:
        ValueError: If ai-edge-litert is missing.
        RuntimeError: If LiteRT cannot read the file.

    Attributes:
        signatures: Names of the signatures.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        num_threads: int = 1,
        weights: "PackedWeights | None" = None,
    ):
        self._weights = PackedWeights(path) if weights is None else weights
        self._model = _load(self._weights, num_threads)
        self.signatures = tuple(self._model.get_signature_list())
        self._buffers = {}

    def inputs_of(self, name: str) -> tuple[str, ...]:
        """Returns the names of the inputs of a signature."""
        return tuple(self._model.get_input_tensor_details(name))

    def run(self, name: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Runs a signature on arrays of exactly its shapes and returns its outputs by name.

        Raises:
            ValueError: If an input is missing or unknown, or has another shape or dtype.
        """
        if name not in self._buffers:
            with filtered_log(_without_reports):
                self._buffers[name] = _Buffers(self._model, name)
        return self._buffers[name].run(inputs)


class PackedWeights:
    """The weights of a file in the order that the kernels need, for any number of engines.

    LiteRT writes packed weights into a cache when it loads a model. That model keeps a buffer of
    the size of its largest weight, often the table of tokens. Here a first model fills the cache
    and is closed. The models of the engines then find the packed weights there, so that they need
    no such buffer and no copy of their own.

    The cache is an anonymous file in memory. Other platforms than Linux do not have such files,
    some systems forbid them, and for a small model the time to load it twice is not worth it.

    Args:
        path: The .tflite file.
        cache: The attribute `cache` of the `PackedWeights` of another process, for a process that
            has inherited its `descriptors`; `path` is then its `path`. `None`: nothing is packed
            yet.

    Raises:
        ValueError: If ai-edge-litert is missing.
        RuntimeError: If LiteRT cannot read the file.

    Attributes:
        path: Path of the file; with a cache, that of the file that was read for it, even if `path`
            has been replaced.
        cache: Path of the cache, as LiteRT expects it.
        descriptors: Numbers of the open files of these paths, a list.
    """

    def __init__(self, path: str | os.PathLike, cache: str | None = None):
        self.path, self.cache, self.descriptors = str(path), IN_MEMORY, []
        if cache is not None:
            self.cache = cache
        elif os.path.getsize(path) >= LARGE:
            self._pack(path)

    def _pack(self, path):
        if IN_MEMORY and os.path.exists(DESCRIPTORS):
            with contextlib.suppress(OSError, AttributeError):  # forbidden or missing
                self.cache = self._keep(os.memfd_create("packed weights"))
        if self.cache != IN_MEMORY:
            self.hold()
            _load(self, 1).close()
        return_large_blocks()  # now, so that the closed model's blocks have been returned as well

    def hold(self) -> None:
        """Opens the file, so that `path` keeps its meaning even if the file is replaced."""
        if os.path.exists(DESCRIPTORS) and not self.path.startswith(DESCRIPTORS):
            self.path = self._keep(os.open(self.path, os.O_RDONLY))

    def _keep(self, descriptor):
        """Returns the path of an open file, which is closed with this object."""
        if descriptor < 3:  # a process that inherits it has its own files with these numbers
            free = os.dup(descriptor), os.dup(descriptor), os.dup(descriptor), os.dup(descriptor)
            for number in (descriptor, *free[:-1]):
                os.close(number)
            descriptor = free[-1]
        weakref.finalize(self, os.close, descriptor)
        self.descriptors.append(descriptor)
        return f"{DESCRIPTORS}/{descriptor}"


def _load(weights, num_threads):
    """Returns LiteRT's model of the file of `PackedWeights`."""
    try:
        from ai_edge_litert.compiled_model import CompiledModel
        from ai_edge_litert.cpu_options import CpuOptions
        from ai_edge_litert.hardware_accelerator import HardwareAccelerator
        from ai_edge_litert.options import Options
    except ImportError as error:
        raise _missing() from error
    options = Options(
        hardware_accelerators=HardwareAccelerator.CPU,
        cpu_options=CpuOptions(num_threads, xnnpack_weight_cache_path=weights.cache),
    )
    with filtered_log(_without_reports):
        return CompiledModel.from_file(weights.path, options=options, environment=_environment())


@functools.cache
def _environment():
    """Returns LiteRT's environment, which a process creates once."""
    from ai_edge_litert.environment import Environment, EnvironmentOptions

    # LiteRT looks for libraries for graphics processors in the folder; they are not used.
    return Environment.create(options=EnvironmentOptions(os.devnull))


class _Buffers:
    """The inputs and outputs of a signature of a compiled model.

    Args:
        model: The `CompiledModel`.
        name: Name of the signature.
    """

    def __init__(self, model, name):
        self._model, self._name = model, name
        self._in = {key: _spec(d) for key, d in model.get_input_tensor_details(name).items()}
        self._out = {key: _spec(d) for key, d in model.get_output_tensor_details(name).items()}
        self._inputs = {key: model.create_input_buffer_by_name(name, key) for key in self._in}
        self._outputs = {key: model.create_output_buffer_by_name(name, key) for key in self._out}
        self._write({key: np.zeros(*spec) for key, spec in self._in.items()})  # the first one logs

    def run(self, inputs):
        self._check(inputs)
        self._write(inputs)
        self._model.run_by_name(self._name, self._inputs, self._outputs)
        return {key: self._read(key, *spec) for key, spec in self._out.items()}

    def _check(self, inputs):
        """Raises a `ValueError` for inputs that LiteRT would read as other numbers or in part."""
        if set(inputs) != set(self._in):
            raise ValueError(
                f"{self._name} has the inputs {', '.join(self._in)}. "
                f"Received: {', '.join(inputs) or 'none'}."
            )
        for key, (shape, dtype) in self._in.items():
            if inputs[key].shape != shape or inputs[key].dtype != dtype:
                raise ValueError(
                    f"`{key}` of {self._name} must be {dtype} of shape {shape}. "
                    f"Received: {inputs[key].dtype} of shape {inputs[key].shape}."
                )

    def _write(self, inputs):
        for key, buffer in self._inputs.items():
            buffer.write(inputs[key])

    def _read(self, key, shape, dtype):
        return self._outputs[key].read(math.prod(shape), dtype).reshape(shape)


def _spec(details):
    """Returns the shape and dtype of a tensor, from LiteRT's details."""
    return tuple(details["shape"]), np.dtype(details["dtype"])


class InterpretedEngine:
    """A file in LiteRT's interpreter, which can have operators of other libraries.

    Args:
        path: The file.
        num_threads: Number of threads that LiteRT may use in a call.
        operators: List of functions that register operators, or of their names.

    Raises:
        ValueError: If ai-edge-litert is missing or LiteRT cannot read the file.

    Attributes:
        signatures: Names of the signatures.
    """

    def __init__(
        self, path: str | os.PathLike, num_threads: int = 1, operators: list | None = None
    ):
        interpreter = load_interpreter("InterpreterWithCustomOps")
        with filtered_log(_without_reports):
            self._interpreter = interpreter(
                model_path=str(path), num_threads=num_threads, custom_op_registerers=operators
            )
        self.signatures = tuple(self._interpreter.get_signature_list())

    def run(self, name: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Runs a signature on arrays and returns its outputs by name."""
        return self._interpreter.get_signature_runner(name)(**inputs)


def load_interpreter(name: str = "Interpreter") -> Any:
    """Returns a class of LiteRT's interpreters by its name.

    Raises:
        ValueError: If ai-edge-litert is not installed; the message says how to install it.
    """
    try:
        from ai_edge_litert import interpreter
    except ImportError as error:
        raise _missing() from error
    return getattr(interpreter, name)


def load_schema() -> Any:
    """Returns the module with the classes of which a `.tflite` model consists as an object.

    Raises:
        ValueError: If ai-edge-litert is not installed; the message says how to install it.
    """
    try:
        from ai_edge_litert import schema_py_generated
    except ImportError as error:
        raise _missing() from error
    return schema_py_generated


def _missing():
    return ValueError(
        "LiteRT files need the package ai-edge-litert in version 2.3 or newer. Install it with: "
        + install_hint("litert")
    )


def _without_reports(log):
    lines = log.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(REPORTS))
