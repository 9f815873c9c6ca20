"""Weights in int4 whose blocks of 32 have a scale each."""

import numpy as np
import pytest
import tensorflow as tf
from support import normal
from test_int4 import run
from test_serialization import converted

from keras_transformer.export import ExportError
from keras_transformer.export.litert.compact import store_once
from keras_transformer.export.litert.int4_blocks import in_blocks, store_in_int4_blocks
from keras_transformer.export.litert.serialization import read_model, schema

ROWS, COLUMNS = 37, 96


def numbers_of(codes, scales):
    """The numbers that codes and scales represent, in loops."""
    numbers = np.zeros((len(codes), 2 * codes.shape[1]))
    for row, column in np.ndindex(*numbers.shape):
        half = int(codes[row, column // 2]) >> 4 * (column % 2) & 15
        scale = float(scales[row, column // 32])
        numbers[row, column] = (half - 16 if half > 7 else half) * scale
    return numbers


def test_each_block_has_a_good_scale():
    """Better than that of the largest number, which has at most 8 bits, as XNNPACK reads it."""
    matrix = (normal(ROWS, COLUMNS) * np.geomspace(1e-3, 9, ROWS)[:, None]).astype("float32")
    matrix[3, :32], matrix[4, :32] = 0, 1e-9
    codes, scales = in_blocks(matrix)
    numbers = numbers_of(codes, scales)
    assert scales.dtype == np.float16 and scales.shape == (ROWS, 3) and (scales > 0).all()
    assert not (scales.astype("float32").view(np.uint32) & 0xFFFF).any()
    blocks = matrix.reshape(ROWS, 3, 32).astype("float64")
    steps = np.maximum(np.abs(blocks).max(-1, keepdims=True) / 7, 1e-30)
    simple = np.rint(blocks / steps) * steps
    error = np.square(numbers - matrix).reshape(ROWS, 3, 32).sum(-1)
    other = np.square(simple - blocks).sum(-1)
    assert (error <= 1.05 * other + 1e-8).all() and error.sum() < 0.95 * other.sum()
    assert not numbers[3, :32].any()


def test_products_read_these_numbers():
    """The product also rounds its inputs to 255 steps."""
    content = store_once(store_in_int4_blocks(converted_in_int8(300)))
    model = read_model(content)
    (graph,) = model.subgraphs
    (weights,) = [t for t in graph.tensors if t.type == schema.TensorType.INT4]
    details = weights.quantization.details
    assert details.blockSize == 32
    codes = model.buffers[weights.buffer].data.reshape(300, 32)
    scales = model.buffers[graph.tensors[details.scales].buffer].data.view(np.float16)
    matrix, x = numbers_of(codes, scales.reshape(300, 2)), normal(1, 64, seed=3).astype("float32")
    exact, own = x.astype("float64") @ matrix.T, normal(300, 64)
    step = (x.max(initial=0) - x.min(initial=0)) / 255
    limit = 0.51 * step * np.abs(matrix).sum(axis=1) + 1e-5
    assert (np.abs(exact - x @ own.T) > limit).any(), "or the test could not fail"
    (product,) = run(content, x)
    assert (np.abs(product - exact) <= limit).all()


def converted_in_int8(rows):
    return converted(rows, [tf.lite.Optimize.DEFAULT])


def test_a_model_without_such_products_is_refused():
    with pytest.raises(ExportError, match="int4 needs products with a multiple of 32 inputs"):
        store_in_int4_blocks(converted(300))
