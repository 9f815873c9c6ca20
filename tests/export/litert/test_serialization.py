"""Models are written as TensorFlow writes them, but with fewer copies."""

import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from support import normal
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer.export.litert.compact import store_once
from keras_transformer.export.litert.serialization import read_model, write_model


def converted(rows, optimizations=()):
    """Returns a .tflite model with a product of `rows` times 64 weights."""
    weights = tf.constant(normal(rows, 64), tf.float32)
    specs = [tf.TensorSpec([1, 64], tf.float32)]
    function = tf.function(lambda x: tf.matmul(x, weights, transpose_b=True), specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.optimizations = list(optimizations)
    return converter.convert()


@pytest.mark.parametrize("optimizations", [(), [tf.lite.Optimize.DEFAULT]])
def test_the_bytes_are_those_of_tensorflow(optimizations):
    content = converted(300, optimizations)
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    expected = flatbuffer_utils.convert_object_to_bytearray(model)
    assert write_model(read_model(content)) == expected
    assert write_model(read_model(write_model(read_model(content)))) == expected


def test_a_model_is_written_without_further_copies():
    content = converted(2**14)  # 4 MiB
    model = read_model(content)
    tracemalloc.start()
    written = write_model(model)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(content) <= len(written) + 4096
    assert peak < 1.1 * len(content)


def test_weights_can_be_changed_in_place_in_a_bytearray():
    content = bytearray(converted(300))
    for buffer in read_model(content).buffers:
        if buffer.data is not None and len(buffer.data) == 300 * 64 * 4:
            buffer.data.view(np.float32)[:] = 0.0
    (buffer,) = (
        b.data for b in read_model(content).buffers if b.data is not None and len(b.data) > 2**16
    )
    assert not buffer.any()
    assert isinstance(store_once(bytes(content)), bytearray)
