"""Weights in float16, with a cast to float32 behind each."""

from typing import Any

import numpy as np

from keras_transformer.export.onnx.packages import load_onnx

SMALLEST = 64  # numbers of a weight; smaller ones, such as limits of masks, stay in float32


def in_float16(model) -> Any:
    """Returns an `onnx.ModelProto` that stores its weights in float16.

    Inputs, outputs and arithmetic remain in float32: a runtime casts the weights once, when it
    loads the model. Arithmetic in float16 would need other numbers for masks and scores, which
    exceed its range.

    Args:
        model: The `onnx.ModelProto` in float32, which is not changed.
    """
    onnx = load_onnx()
    half = onnx.ModelProto()
    half.CopyFrom(model)
    weights, casts = [], []
    for weight in half.graph.initializer:
        array = onnx.numpy_helper.to_array(weight)
        if not _fits(array):
            weights.append(weight)
            continue
        name = f"{weight.name}_float16"
        weights.append(onnx.numpy_helper.from_array(array.astype(np.float16), name))
        cast = onnx.helper.make_node("Cast", [name], [weight.name], to=onnx.TensorProto.FLOAT)
        casts.append(cast)
    replace(half.graph.initializer, weights)
    replace(half.graph.node, [*casts, *half.graph.node])
    return half


def replace(field, messages) -> None:
    """Replaces the messages of a repeated field of a protocol buffer."""
    copies = [message.__deepcopy__() for message in messages]
    del field[:]
    field.extend(copies)


def _fits(array):
    """Returns whether an array is a weight whose numbers are in the range of float16."""
    if array.dtype != np.float32 or array.size < SMALLEST:
        return False
    return bool(np.abs(array).max() <= np.finfo(np.float16).max)
