"""Operators that reduce axes, sort, or accumulate."""

import numpy as np

from keras_transformer.export.onnx.graph.values import constant
from keras_transformer.export.onnx.operators.table import operator

INT32, INT64, BOOL = np.dtype("int32"), np.dtype("int64"), np.dtype("bool")
REDUCTIONS = {
    "Max": "ReduceMax",
    "Mean": "ReduceMean",
    "Min": "ReduceMin",
    "Prod": "ReduceProd",
    "Sum": "ReduceSum",
}


def reduced(graph, kind, x, axes, keep):
    """Returns the result of an ONNX reduction over axes, a list of integers."""
    axes = sorted(axis % x.rank for axis in axes)
    if not axes:
        return x
    dims = [1 if axis in axes else size for axis, size in enumerate(x.dims)]
    if not keep:
        dims = [size for axis, size in enumerate(dims) if axis not in axes]
    return graph.add(kind, [x, constant(axes, INT64)], x.dtype, tuple(dims), keepdims=int(keep))


@operator(*REDUCTIONS)
def reduction(graph, op, inputs):  # noqa: D103
    x, axes = inputs
    axes = axes.constant.reshape(-1).tolist()
    if op.type == "Prod" and x.elements is not None:
        known = [size for size in x.elements if not (isinstance(size, int) and size == 1)]
        if len(known) == 1:  # a single size that is not 1
            return graph.add(
                *("ReduceProd", [x, constant([0], INT64)], x.dtype, ()), known, keepdims=0
            )
    return reduced(graph, REDUCTIONS[op.type], x, axes, op.get_attr("keep_dims"))


@operator("Any", "All")
def logical(graph, op, inputs):  # noqa: D103
    x, axes = inputs
    kind = {"Any": "ReduceMax", "All": "ReduceMin"}[op.type]
    axes = axes.constant.reshape(-1).tolist()
    return graph.cast(
        reduced(graph, kind, graph.cast(x, INT32), axes, op.get_attr("keep_dims")), BOOL
    )


@operator("ArgMax", "ArgMin")
def arg_max(graph, op, inputs):  # noqa: D103
    x, axis = inputs
    axis = int(axis.constant) % x.rank
    dims = tuple(size for place, size in enumerate(x.dims) if place != axis)
    found = graph.add(op.type, [x], INT64, dims, axis=axis, keepdims=0)
    return graph.cast(found, op.get_attr("output_type").as_numpy_dtype)


@operator("TopKV2")
def top_k(graph, op, inputs):  # noqa: D103
    x, k = inputs
    count = int(k.constant)
    dims = (*x.dims[:-1], count)
    outputs = [(x.dtype, dims), (INT64, dims)]
    values, places = graph.add_several(
        "TopK", [x, constant([count], INT64)], outputs, axis=-1, largest=1, sorted=1
    )
    return [values, graph.cast(places, INT32)]


@operator("Softmax", "LogSoftmax")
def softmax(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return graph.add(op.type, [x], x.dtype, x.dims, axis=-1)


@operator("Cumsum")
def cumsum(graph, op, inputs):  # noqa: D103
    x, axis = inputs
    flags = {name: int(op.get_attr(name)) for name in ("exclusive", "reverse")}
    return graph.add("CumSum", [x, graph.cast(axis, INT64)], x.dtype, x.dims, **flags)
