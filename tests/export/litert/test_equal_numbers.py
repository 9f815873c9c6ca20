"""Constants of equal numbers are one number each until the weights take their place."""

import numpy as np
import tensorflow as tf
from stand_in_files import described
from support import normal

from keras_transformer.export.litert.equal_numbers import complete_constants, without_equal_numbers
from keras_transformer.export.litert.serialization import read_model, write_model
from keras_transformer.export.litert.tensorflow_converter import convert_saved_model

SHAPE = (130, 150)  # more than 2**14 numbers


def converted(folder, large=False):
    """The bytes of a model that multiplies by equal numbers, by others, and by a few equal ones."""
    equal = tf.constant(1.25, shape=SHAPE)
    other, few = tf.constant(normal(*SHAPE), tf.float32), tf.constant(0.5, shape=(150, 7))

    def products(x):
        return {"equal": x @ equal, "other": x @ other, "few": x @ equal @ few}

    specs = [tf.TensorSpec([3, SHAPE[0]], tf.float32, "x")]
    signatures = {"products": tf.function(products, specs).get_concrete_function()}
    tf.saved_model.save(tf.Module(), str(folder), signatures)
    return convert_saved_model(folder, ["products"], "none", large=large)


def test_buffers_may_follow_the_model(tmp_path):
    whole, apart = converted(tmp_path), converted(tmp_path, large=True)
    assert any(entry.offset for entry in raw(apart).buffers)
    assert not any(entry.offset for entry in raw(whole).buffers)
    assert described(write_model(read_model(apart))) == described(whole)


def raw(content):
    from keras_transformer.export.litert.serialization import schema

    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))


def test_equal_numbers_are_completed_again(tmp_path):
    whole = converted(tmp_path)
    short = without_equal_numbers(whole)
    assert len(whole) - 4 * np.prod(SHAPE) <= len(short) + 4096 < len(whole)
    model = read_model(short)
    assert complete_constants(model, written=())
    assert not complete_constants(model, written=())
    assert described(write_model(model)) == described(whole)


def test_constants_that_will_be_written_have_room(tmp_path):
    model = read_model(without_equal_numbers(converted(tmp_path)))
    numbers = {tensor.buffer for graph in model.subgraphs for tensor in graph.tensors}
    assert complete_constants(model, numbers)
    sizes = [len(b.data) for b in model.buffers if b.data is not None and not np.any(b.data)]
    assert 4 * np.prod(SHAPE) in sizes
