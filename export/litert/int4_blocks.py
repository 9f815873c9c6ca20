"""Products with weights in int4, of which each block of 32 inputs of a row has a scale."""

import hashlib
from typing import NamedTuple

import numpy as np

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.constants import add_buffer, add_constant
from keras_transformer.export.litert.int4 import (
    HIGHEST,
    OPERATORS,
    TYPES,
    VERSION,
    holds_int8,
    weights_of_products,
)
from keras_transformer.export.litert.serialization import read_model, schema, write_model

BLOCK = 32  # weights that share a scale; XNNPACK supports multiples of 32
# Scales to choose from, in units of the one that represents the largest number of a block.
TRIED = np.linspace(0.7, 1, 10, dtype=np.float32)
LEAST = np.float32(2.0**-14)  # the smallest normal number in float16; XNNPACK refuses smaller ones


class Int4Blocks(NamedTuple):
    """A matrix `[N, M]`, whose numbers are `code * scale`.

    Args:
        codes: `[N, M / 2]`, uint8: two numbers in int4, the first one in the lower half.
        scales: `[N, M / BLOCK]`, float16.
    """

    codes: np.ndarray
    scales: np.ndarray


def in_blocks(matrix: np.ndarray) -> Int4Blocks:
    """Returns a matrix `[N, M]` in float32 with the best of several scales for each block."""
    blocks = matrix.reshape(len(matrix), -1, BLOCK)
    largest = np.abs(blocks).max(-1, keepdims=True) / HIGHEST
    tried = [np.maximum(_in_8_bits(largest * factor), LEAST) for factor in TRIED]
    errors = [np.square(_rounded(blocks, t) * t - blocks).sum(-1, keepdims=True) for t in tried]
    scales = np.choose(np.argmin(errors, axis=0), tried)  # [N, M / BLOCK, 1]
    codes = _rounded(blocks, scales).astype(np.int8).reshape(matrix.shape)
    halves = codes.view(np.uint8) & 15
    return Int4Blocks(halves[:, ::2] | halves[:, 1::2] << 4, scales[..., 0].astype(np.float16))


def _rounded(blocks, scales):
    return np.clip(np.rint(blocks / scales), -HIGHEST, HIGHEST)


def _in_8_bits(numbers):
    """Returns numbers in float32 with 8 significant bits, as XNNPACK reads scales (bfloat16)."""
    whole = numbers.astype(np.float32).view(np.uint32)
    return ((whole + 0x8000) & np.uint32(0xFFFF0000)).view(np.float32)


def store_in_int4_blocks(content: bytes | bytearray) -> bytearray:
    """Returns a .tflite model whose products with int8 weights have int4 weights instead.

    Weights that are also looked up, as in a table, keep int8. So do weights if the number of inputs
    in a row is no multiple of `BLOCK`.

    Args:
        content: The bytes of a .tflite model.

    Raises:
        ExportError: If no product can have int4 weights.
    """
    model = read_model(content)
    looked_up = _looked_up(model)
    known = {}
    for graph in model.subgraphs:
        for number in weights_of_products(model, graph):
            tensor = graph.tensors[number]
            fits = holds_int8(model, tensor) and tensor.shape[1] % BLOCK == 0
            if fits and _digest(model, tensor) not in looked_up:
                _store(model, graph, tensor, known)
    for code in model.operatorCodes:
        if code.builtinCode == OPERATORS.FULLY_CONNECTED:
            code.version = max(code.version, VERSION)
    if not known:
        raise ExportError(
            f"int4 needs products with a multiple of {BLOCK} inputs and at least 1,024 weights. "
            "This model has none; use int8."
        )
    return write_model(model)


def _store(model, graph, tensor, known):
    """Stores a tensor of a graph in blocks.

    Args:
        model, graph, tensor: The model, the graph and the tensor, in int8.
        known: Dictionary from buffers and scales of int8 to the buffers of codes and scales.
    """
    row_scales = np.asarray(tensor.quantization.scale, np.float32)
    key = tensor.buffer, row_scales.tobytes()
    if key not in known:
        codes = model.buffers[tensor.buffer].data.view(np.int8).reshape(tensor.shape)
        blocks = in_blocks(codes * row_scales.reshape(-1, 1))
        known[key] = *(add_buffer(model, part) for part in blocks), blocks.scales.shape
    tensor.buffer, buffer, shape = known[key]
    details = schema.BlockwiseQuantizationT()
    details.scales = add_constant(graph, buffer, shape, TYPES.FLOAT16)
    details.zeroPoints, details.blockSize = -1, BLOCK  # without zero points
    tensor.type, tensor.quantization = TYPES.INT4, schema.QuantizationParametersT()
    tensor.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
    tensor.quantization.details = details


def _looked_up(model):
    """Returns the digests of the constants that look-ups read."""
    return {
        _digest(model, graph.tensors[operator.inputs[0]])
        for graph in model.subgraphs
        for operator in graph.operators
        if model.operatorCodes[operator.opcodeIndex].builtinCode == OPERATORS.GATHER
    } - {None}


def _digest(model, tensor):
    data = model.buffers[tensor.buffer].data
    return None if data is None or not len(data) else hashlib.sha256(data).digest()
