"""Operations on constants, which are computed when a graph is converted."""

import inspect

import numpy as np
import tensorflow as tf

from keras_transformer.export.onnx.graph.values import constant
from keras_transformer.export.onnx.operators.products import LARGE

# Operators whose result may be much larger than their inputs, or another layout of the same matrix.
GROWING = ("Fill", "BroadcastTo", "Tile", "Range", "Transpose", "Pad", "PadV2", "OneHot")


def folded(op, inputs) -> list | None:
    """Returns the outputs of an operation on constants; `None` if it must run in the graph.

    Args:
        op: The `tf.Operation`.
        inputs: List of its inputs, `Value`s.
    """
    if not all(value.is_constant for value in inputs):
        return None
    compute = getattr(tf.raw_ops, op.type, None)
    if compute is None or op.op_def.is_stateful or op.type.startswith("TensorList"):
        return None
    if op.type in GROWING and _size(op) > LARGE:
        return None
    # As tensors: TensorFlow would convert plain arrays to an operator's default dtype.
    arguments = {}
    with tf.init_scope(), tf.device("CPU"):
        rest = [tf.constant(value.constant) for value in inputs]
    for argument in op.op_def.input_arg:
        if argument.number_attr or argument.type_list_attr:
            several = argument.number_attr or argument.type_list_attr
            count = op.get_attr(several) if argument.number_attr else len(op.get_attr(several))
            arguments[argument.name], rest = rest[:count], rest[count:]
        else:
            arguments[argument.name], rest = rest[0], rest[1:]
    known = inspect.signature(compute).parameters
    if not known.keys() >= arguments.keys():  # it stands for a function with other names
        return None
    for attribute in op.op_def.attr:
        if attribute.name in known and attribute.name not in arguments:
            arguments[attribute.name] = op.get_attr(attribute.name)
    with tf.init_scope(), tf.device("CPU"):
        outputs = compute(**arguments)
    if isinstance(outputs, tf.Tensor):
        return [constant(outputs.numpy())]
    return [constant(output.numpy()) for output in outputs]


def _size(op):
    """Returns the number of elements of the output, 0 if it is not known."""
    shape = op.outputs[0].shape
    return int(np.prod(shape.as_list())) if shape.is_fully_defined() else 0
