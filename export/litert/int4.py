"""Matrices in int4: rows of numbers with a scale each, and the products that read them."""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.compact import LARGEST, codes_of_rows, scales_of_rows
from keras_transformer.export.litert.constants import add_buffer
from keras_transformer.export.litert.kernels import Int8Rows, stored_codes, stored_scales
from keras_transformer.export.litert.serialization import read_model, schema, write_model


class Int4Rows(Int8Rows):
    """Kernels that read rows of matrices in int4, with one scale for each row.

    They read the same bytes as the product that computes the logits: see `store_in_int4`. Not every
    version of LiteRT gathers rows of int4, so the graph gathers bytes and computes both halves of
    each. Matrices with an odd number of columns are read in int8.

    Args:
        tables, kernel, bias, code_of: See `Int8Rows`.
    """

    def _stored(self, table, code=None):
        if table.shape[1] % 2:
            return super()._stored(table, code)
        packed, scales = in_int4(table)
        codes = stored_codes(lambda: packed.view(np.int8), packed.shape, code)
        scales_at = stored_scales(scales)
        return lambda tokens: (_halves(tf.gather(codes(), tokens)), scales_at(tokens))


def _halves(packed):
    """Returns the numbers `[..., D]`, int8, in bytes `[..., D / 2]`, int8."""
    packed = tf.cast(packed, tf.float32)  # -128 to 127
    upper = tf.floor(packed / 16)
    lower = packed - 16 * upper  # 0 to 15
    lower -= 16 * tf.floor(lower / 8)  # -8 to 7
    numbers = tf.stack([lower, upper], axis=-1)  # [..., D / 2, 2]
    *shape, count = packed.shape
    return tf.cast(tf.reshape(numbers, [*shape, 2 * count]), tf.int8)


HIGHEST = 7  # of int4; -8 is not used, because LiteRT's kernels without XNNPACK read it as 8
# Scales that are tried for each row, in units of its scale in int8. The last one represents the
# largest number of the row. A smaller one rounds that number down but all others less: for the
# weights of a model of Multi30K the best ones have 22 % less squared error.
TRIED = np.geomspace(1, LARGEST / HIGHEST, 150)
ROWS = 1024  # quantised at a time, because the intermediate results are in int64
OPERATORS, TYPES = schema.BuiltinOperator, schema.TensorType
PRODUCT = (OPERATORS.FULLY_CONNECTED, 1)  # an operator and the place of its weights
VERSION = 12  # of FULLY_CONNECTED: the first with a scale for each row of the weights


class Int4Matrix(NamedTuple):
    """A matrix `[N, M]` in int4.

    Args:
        codes: `[N, M / 2]`, uint8: two numbers, the first one in the lower half.
        scales: `[N]`, float32.
    """

    codes: np.ndarray
    scales: np.ndarray


def in_int4(matrix) -> Int4Matrix:
    """Returns the `Int4Matrix` that `store_in_int4` stores for a matrix `[N, M]` in float32."""
    scales = scales_of_rows(matrix)
    return _of_int8(codes_of_rows(matrix, scales), scales.astype(np.float32))


def _of_int8(codes, scales):
    """Returns the `Int4Matrix` of a matrix in int8.

    Each row has the scale of `TRIED` with the smallest squared error. The converter has rounded the
    matrix to int8 before, which adds less than 1 % to that error. In return, a row consists of at
    most 256 different numbers, and how often each occurs is enough to know the error of a scale.

    Args:
        codes: `[N, M]`, int8.
        scales: `[N]`, float32.
    """
    numbers = np.arange(256, dtype=np.uint8).view(np.int8)  # 0 to 127, then -128 to -1
    rounded = np.clip(np.rint(numbers / TRIED[:, None]), -HIGHEST, HIGHEST)  # [TRIED, 256]
    errors = np.square(rounded * TRIED[:, None] - numbers)
    errors = np.rint(errors * 2**16) / 2**16  # their sums are exact, so equal on every processor
    rounded = rounded.astype(np.int8)
    packed, best = [], []
    for start in range(0, len(codes), ROWS):
        some = codes[start : start + ROWS].view(np.uint8)
        places = 256 * np.arange(len(some))[:, None] + some  # [ROWS, M]
        counts = np.bincount(places.ravel(), minlength=256 * len(some)).reshape(-1, 256)
        best.append(np.argmin(counts @ errors.T, axis=1))  # [ROWS]
        halves = rounded[best[-1][:, None], some].view(np.uint8) & 15  # [ROWS, M]
        packed.append(halves[:, ::2] | halves[:, 1::2] << 4)
    factors = TRIED[np.concatenate(best)].astype(np.float32)
    return Int4Matrix(np.concatenate(packed), factors * scales)


def store_in_int4(content) -> bytearray:
    """Returns a .tflite model whose products with int8 weights have int4 weights instead.

    Their inputs are rounded to int8 at run time, as before. Products with an odd number of inputs
    keep their int8 weights, because a byte would belong to two rows.

    Args:
        content: The bytes of a .tflite model.

    Raises:
        ExportError: If no product can have int4 weights.
    """
    model = read_model(content)
    known = {}
    for graph in model.subgraphs:
        for number in weights_of_products(model, graph):
            tensor = graph.tensors[number]
            if holds_int8(model, tensor) and tensor.shape[1] % 2 == 0:
                _store(model, tensor, known)
    for code in model.operatorCodes:
        if code.builtinCode == OPERATORS.FULLY_CONNECTED:
            code.version = max(code.version, VERSION)
    if not known:
        raise ExportError(
            "int4 needs products with an even number of inputs and at least 1,024 weights. This "
            "model has none; use int8."
        )
    return write_model(model)


def weights_of_products(model: Any, graph: Any) -> list[int]:
    """Returns the numbers of the tensors that are the weights of products and nothing else."""
    readers = collections.defaultdict(set)
    for operator in graph.operators:
        kind = model.operatorCodes[operator.opcodeIndex].builtinCode
        for place, number in enumerate(operator.inputs):
            readers[int(number)].add((kind, place))
    for number in graph.outputs:
        readers[int(number)].add(None)
    return [number for number, kinds in readers.items() if kinds == {PRODUCT}]


def holds_int8(model: Any, tensor: Any) -> bool:
    """Returns whether a tensor is a matrix of constants in int8."""
    data = model.buffers[tensor.buffer].data
    is_int8 = tensor.type == TYPES.INT8 and data is not None and len(data) > 0
    return is_int8 and len(tensor.shape) == 2


def _store(model, tensor, known):
    """Stores a tensor in int4.

    Args:
        model: The model.
        tensor: The tensor, in int8.
        known: Dictionary from buffers and scales of int8 to the buffers and parameters of int4.
    """
    scales = np.asarray(tensor.quantization.scale, np.float32)
    key = tensor.buffer, scales.tobytes()  # matrices with other scales can have the same codes
    if key not in known:
        codes = model.buffers[tensor.buffer].data.view(np.int8).reshape(tensor.shape)
        rows = _of_int8(codes, np.broadcast_to(scales, len(codes)))
        quantization = schema.QuantizationParametersT()
        quantization.scale, quantization.zeroPoint = rows.scales, np.zeros(len(codes), np.int64)
        quantization.quantizedDimension = 0
        known[key] = add_buffer(model, rows.codes), quantization
    tensor.type = TYPES.INT4
    tensor.buffer, tensor.quantization = known[key]
