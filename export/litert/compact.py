"""Smaller .tflite files: matrices in int8, and quantisation parameters that are stored once."""

import numpy as np
from tensorflow.lite.tools import flatbuffer_utils

LARGEST = 127
# Rows with smaller numbers only have the same scale as this one, as in the converter. XNNPACK
# refuses a model with a scale that is no normal number.
SMALLEST = 0.5e-6
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


def share_quantization(content) -> bytes:
    """Returns a .tflite model in which tensors with equal quantisation parameters share them.

    A table in int8 has a scale and a zero point for each of its V rows, 12 bytes, in every graph
    that uses it. The converter stores the codes of the table once, but the scales for every graph.
    For a small model with three source lengths and two searches they were a quarter of the file.

    Args:
        content: The bytes of a .tflite model.
    """
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    known = {}
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if tensor.quantization is not None:
                key = _key(tensor.quantization)
                tensor.quantization = known.setdefault(key, _Once(tensor.quantization))
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


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
