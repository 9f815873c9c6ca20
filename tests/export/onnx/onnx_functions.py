"""Functions of TensorFlow converted to ONNX, and called."""

import numpy as np
import onnx
import onnxruntime
import tensorflow as tf

from keras_transformer.export.onnx.convert import convert_function


def converted(function, inputs):
    """The model of a function of arrays, whose first two axes have unknown sizes."""
    shapes = [[*[None, None][: array.ndim], *array.shape[2:]] for array in inputs]
    specs = {
        f"input_{number}": tf.TensorSpec(shape, array.dtype)
        for number, (shape, array) in enumerate(zip(shapes, inputs, strict=True))
    }
    named = tf.function(
        lambda **arguments: {"output": function(*arguments.values())}, autograph=False
    )
    model = convert_function(named.get_concrete_function(**specs))
    onnx.checker.check_model(model, full_check=True)
    return model


def call(function, inputs, model=None):
    """Returns the output of ONNX Runtime for arrays."""
    model = converted(function, inputs) if model is None else model
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = {value.name for value in session.get_inputs()}
    arrays = {f"input_{number}": np.asarray(array) for number, array in enumerate(inputs)}
    return session.run(["output"], {name: arrays[name] for name in arrays if name in names})[0]
