"""Lists of tensors of one shape, as loops over time use them: tensors with one more axis."""

import numpy as np

from keras_transformer.export.onnx.graph.values import Reserved, constant
from keras_transformer.export.onnx.operators.table import operator

INT64 = np.dtype("int64")


@operator("TensorListReserve")
def reserve(graph, op, inputs):  # noqa: D103
    _, count = inputs
    return Reserved(op.get_attr("element_dtype").as_numpy_dtype, count)


def zeros(graph, reserved, dims):
    """Returns a list of zeros of a shape, in place of a `Reserved`."""
    number = (reserved.count.elements or [None])[0]
    if number is None:
        count = graph.unsqueeze(graph.cast(reserved.count, INT64), [0])
        parts = [count, graph.shape(dims)]
        shape = graph.add("Concat", parts, INT64, (1 + len(dims),), axis=0)
    else:
        shape = graph.shape([number, *dims])
    return graph.add(
        "Expand", [constant(0, reserved.dtype), shape], reserved.dtype, (number, *dims)
    )


@operator("TensorListFromTensor")
def from_tensor(graph, op, inputs):  # noqa: D103
    return inputs[0]


@operator("TensorListStack")
def stack(graph, op, inputs):  # noqa: D103
    return inputs[0]


@operator("TensorListGetItem")
def get_item(graph, op, inputs):  # noqa: D103
    x, index, _ = inputs
    return graph.add("Gather", [x, index], x.dtype, x.dims[1:], axis=0)


@operator("TensorListSetItem")
def set_item(graph, op, inputs):  # noqa: D103
    x, index, item = inputs
    if isinstance(x, Reserved):
        x = zeros(graph, x, item.dims)
    place = graph.unsqueeze(graph.cast(index, INT64), [0, 1])  # [1, 1]
    row = graph.unsqueeze(item, [0])
    return graph.add("ScatterND", [x, place, row], x.dtype, x.dims)
