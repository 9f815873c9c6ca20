"""Zeros with which the caches of a .tflite model begin: computed, not stored."""

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from keras_transformer.export.litert.constants import add_buffer, add_constant

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
