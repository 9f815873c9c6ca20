"""Smaller .tflite files: matrices in int8, nothing that is stored twice, and no stored zeros."""

import hashlib

import numpy as np

from keras_transformer.export.litert.constants import add_buffer, add_constant
from keras_transformer.export.litert.serialization import Builder, read_model, schema, write_model

LARGE = 2**10  # bytes of zeros from which on they are computed
OPERATORS, TYPES = schema.BuiltinOperator, schema.TensorType


def compute_zeros(model) -> None:
    """Lets FILL operators compute the zeros that loops begin with, in place of large constants.

    The converter computes what does not depend on an input, such as an empty cache, and stores it.

    Args:
        model: A .tflite model as `flatbuffer_utils` has read it.
    """
    for graph in model.subgraphs:
        filled = {}
        for operator in graph.operators:
            if model.operatorCodes[operator.opcodeIndex].builtinCode == OPERATORS.WHILE:
                for number in operator.inputs:
                    if number not in filled and _is_zero(model, graph.tensors[number]):
                        filled[number] = _fill(model, graph, number)
        graph.operators = [*filled.values(), *graph.operators]


def _is_zero(model, tensor):
    """Returns whether a tensor is a large constant of zeros in float32."""
    data = model.buffers[tensor.buffer].data
    is_large = tensor.type == TYPES.FLOAT32 and data is not None and len(data) >= LARGE
    return is_large and not data.any()


def _fill(model, graph, number):
    """Returns an operator that computes a tensor, which is no constant from then on."""
    tensor, operator = graph.tensors[number], schema.OperatorT()
    tensor.buffer = 0
    shape = np.asarray(tensor.shape, np.int32)
    operator.opcodeIndex = _code(model)
    operator.inputs = [
        add_constant(graph, add_buffer(model, shape), shape.shape, TYPES.INT32),
        add_constant(graph, add_buffer(model, np.zeros(1, np.float32)), (), TYPES.FLOAT32),
    ]
    operator.outputs = [number]
    operator.builtinOptionsType = schema.BuiltinOptions.FillOptions
    operator.builtinOptions = schema.FillOptionsT()
    return operator


def _code(model):
    """Returns the number of FILL among the kinds of operators of the model, which may be new."""
    for number, code in enumerate(model.operatorCodes):
        if code.builtinCode == OPERATORS.FILL:
            return number
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = OPERATORS.FILL
    code.version = 1
    model.operatorCodes.append(code)
    return len(model.operatorCodes) - 1


LARGEST = 127
# Rows with smaller numbers only have the same scale as this one, as in the converter. XNNPACK
# refuses a model with a scale that is no normal number.
SMALLEST = 0.5e-6
SHORT = 256  # bytes of a list that is compared with others
ROWS = 1024  # quantised at a time, because the intermediate results are in float64


def scales_of_rows(matrix) -> np.ndarray:
    """Returns the scale of int8 for each row of `matrix` `[N, M]`: `[N]`, float64."""
    largest = np.maximum(matrix.max(axis=1), -matrix.min(axis=1))
    return np.maximum(largest.astype(np.float64), SMALLEST) / LARGEST


def codes_of_rows(matrix, scales) -> np.ndarray:
    """Returns `matrix` `[N, M]` in units of `scales` `[N]`, rounded, halves away from 0: int8."""
    codes = np.empty(matrix.shape, np.int8)
    for start in range(0, len(matrix), ROWS):
        some = slice(start, start + ROWS)
        quotients = matrix[some] / scales[some, None]
        codes[some] = np.sign(quotients) * np.floor(np.abs(quotients) + 0.5)
    return codes


def store_once(content) -> bytearray:
    """Returns a .tflite model in which nothing is stored twice, and only interfaces have names.

    Graphs are a large part of a small model's file, because every cache size of every signature has
    its own. Equal constants share a buffer, equal lists and quantisation parameters are written
    once, tensors without constants share the empty buffer, and tensors inside a signature have no
    names. Zeros that loops begin with are computed: see `compute_zeros`. A table in int8 has a
    scale and a zero point for each of its V rows, 12 bytes, in every graph that uses it; in the
    file of a small model with three source lengths and two searches, those were a quarter.

    Args:
        content: The bytes of a .tflite model.
    """
    model = read_model(content)
    compute_zeros(model)
    _share_buffers(model)
    known = {}
    for graph in model.subgraphs:
        ends = {*graph.inputs, *graph.outputs}
        for number, tensor in enumerate(graph.tensors):
            if number not in ends:
                tensor.name = b""
            if tensor.quantization is not None:
                key = _key(tensor.quantization)
                tensor.quantization = known.setdefault(key, _Once(tensor.quantization))
    return write_model(model, _Builder(len(content)))


def _share_buffers(model):
    """Stores equal constants once; tensors without one get the first buffer, which is empty."""
    owners = [tensor for graph in model.subgraphs for tensor in graph.tensors]
    owners += model.metadata or []
    digests = [hashlib.sha256(b"" if b.data is None else b.data).digest() for b in model.buffers]
    buffers, places = [model.buffers[0]], {hashlib.sha256().digest(): 0}
    for owner in owners:
        digest = digests[owner.buffer]
        if digest not in places:
            places[digest] = len(buffers)
            buffers.append(model.buffers[owner.buffer])
        owner.buffer = places[digest]
    model.buffers = buffers


class _Builder(Builder):
    """Builder that writes equal names and equal short lists of numbers once."""

    def __init__(self, size):
        super().__init__(size)
        self._places = {}

    def CreateNumpyVector(self, x):  # noqa: N802  (the name of the base class)
        if x.nbytes > SHORT and x.dtype != np.int64:  # int64: the zero points of rows, all 0
            return super().CreateNumpyVector(x)
        key = x.dtype.str, x.tobytes()
        if key not in self._places:
            self._places[key] = super().CreateNumpyVector(x)
        return self._places[key]

    def CreateString(self, s, encoding="utf-8", errors="strict"):  # noqa: N802
        if s not in self._places:
            self._places[s] = super().CreateString(s, encoding, errors)
        return self._places[s]


class _Once:
    """Quantisation parameters that are written once; later uses point to them."""

    def __init__(self, quantization):
        self._quantization, self._place = quantization, None

    def Pack(self, builder):  # noqa: N802  (the name that flatbuffers calls)
        if self._place is None:
            self._place = self._quantization.Pack(builder)
        return self._place


def _key(quantization):
    """Returns the fields of quantisation parameters as a hashable value."""
    return tuple(
        (name, None if value is None else tuple(value) if hasattr(value, "__len__") else value)
        for name, value in sorted(vars(quantization).items())
    )
