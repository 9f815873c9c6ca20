"""Arithmetic of unsigned integers of 32 bits, for which ONNX Runtime has no kernels.

It is computed in int64; a cast to uint32 then keeps the lower 32 bits, as ONNX defines it.
"""

import numpy as np

from keras_transformer.export.onnx.graph.values import broadcast, constant
from keras_transformer.export.onnx.operators.table import operator

INT64, UINT32 = np.dtype("int64"), np.dtype("uint32")
HALF = 2**16  # numbers in half of the bits
EMULATED = ("Add", "Mul", "Sub")  # operators of ONNX


@operator("Bitcast")
def bitcast(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    dtype = np.dtype(op.get_attr("type").as_numpy_dtype)
    if {x.dtype.kind, dtype.kind} - {"i", "u"} or x.dtype.itemsize != dtype.itemsize:
        raise ValueError(f"it makes {dtype.name} of {x.dtype.name}.")
    return graph.cast(x, dtype)  # which keeps the bits of integers of one size


def unsigned(graph, kind, a, b):
    """Returns the result of an operator of `EMULATED` modulo 2**32.

    Args:
        graph: The `Graph`.
        kind: Name of the ONNX operator.
        a, b: The `Value`s, uint32.
    """
    a, b = graph.cast(a, INT64), graph.cast(b, INT64)
    if kind != "Mul" or _is_small(a) or _is_small(b):
        return graph.cast(_computed(graph, kind, a, b), UINT32)
    # The product of two numbers of 32 bits has 64, one more than int64: half of the bits at a time.
    half = constant(HALF, INT64)
    lower = _computed(graph, "Mod", b, half)
    upper = _computed(graph, "Div", b, half)
    upper = _computed(graph, "Mod", _computed(graph, "Mul", a, upper), half)
    upper = _computed(graph, "Mul", upper, half)
    lower = _computed(graph, "Mul", a, lower)
    return graph.cast(_computed(graph, "Add", lower, upper), UINT32)


def _is_small(value):
    return value.is_constant and value.constant.max(initial=0) < 2**31


def _computed(graph, kind, a, b):
    return graph.add(kind, [a, b], INT64, broadcast(a.dims, b.dims))
