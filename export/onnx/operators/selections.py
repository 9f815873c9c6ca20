"""Operators that pick, place or repeat elements."""

import numpy as np

from keras_transformer.export.onnx.graph.values import broadcast, constant
from keras_transformer.export.onnx.operators.products import transposed
from keras_transformer.export.onnx.operators.table import operator

INT32, INT64 = np.dtype("int32"), np.dtype("int64")


@operator("GatherV2", "Gather", "ResourceGather")
def gather(graph, op, inputs):  # noqa: D103
    values, places, *axis = inputs
    axis = int(axis[0].constant) % values.rank if axis else 0
    batch_dims = op.get_attr("batch_dims") if "batch_dims" in op.node_def.attr else 0
    if batch_dims:
        return _gather_in_rows(graph, values, places, axis, batch_dims)
    dims = (*values.dims[:axis], *places.dims, *values.dims[axis + 1 :])
    elements = None
    if values.elements is not None and places.is_constant and values.rank == 1:
        elements = [values.elements[place] for place in places.constant.reshape(-1)]
    return graph.add("Gather", [values, places], values.dtype, dims, elements, axis=axis)


def _gather_in_rows(graph, values, places, axis, batch_dims):
    """Returns the elements at places that differ from row to row."""
    if axis != batch_dims:  # moved next to the axes of the batch
        rest = [place for place in range(batch_dims, values.rank) if place != axis]
        order = [*range(batch_dims), axis, *rest]
        moved = _gather_in_rows(
            graph, transposed(graph, values, order), places, batch_dims, batch_dims
        )
        new = places.rank - batch_dims
        back = [*range(batch_dims)]
        before = axis - batch_dims
        back += [batch_dims + new + place for place in range(before)]
        back += [batch_dims + place for place in range(new)]
        back += [*range(batch_dims + new + before, moved.rank)]
        return transposed(graph, moved, back)
    dims = (*places.dims, *values.dims[axis + 1 :])
    if values.rank == axis + 1 and places.rank == values.rank:
        return graph.add("GatherElements", [values, places], values.dtype, dims, axis=axis)
    rows = graph.unsqueeze(graph.cast(places, INT64), [places.rank])
    return graph.add("GatherND", [values, rows], values.dtype, dims, batch_dims=batch_dims)


@operator("GatherNd")
def gather_nd(graph, op, inputs):  # noqa: D103
    values, places = inputs
    dims = (*places.dims[:-1], *values.dims[places.dims[-1] :])
    return graph.add("GatherND", [values, graph.cast(places, INT64)], values.dtype, dims)


@operator("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterMax")
def scatter(graph, op, inputs):  # noqa: D103
    values, places, updates = inputs
    kind = {"TensorScatterAdd": "add", "TensorScatterMax": "max"}.get(op.type)
    inputs = [values, graph.cast(places, INT64), updates]
    return graph.add("ScatterND", inputs, values.dtype, values.dims, reduction=kind)


@operator("ScatterNd")
def scatter_nd(graph, op, inputs):  # noqa: D103
    places, updates, shape = inputs
    dims = tuple(shape.elements)
    zeros = graph.add(
        "Expand", [constant(0, updates.dtype), graph.cast(shape, INT64)], updates.dtype, dims
    )
    inputs = [zeros, graph.cast(places, INT64), updates]
    return graph.add("ScatterND", inputs, updates.dtype, dims, reduction="add")


@operator("OneHot")
def one_hot(graph, op, inputs):  # noqa: D103
    places, depth, on, off = inputs
    axis, count = op.get_attr("axis"), int(depth.constant)
    axis = places.rank if axis == -1 else axis
    dims = (*places.dims[:axis], count, *places.dims[axis:])
    shape = [1] * (places.rank + 1)
    shape[axis] = count
    numbers = constant(np.arange(count, dtype=places.dtype).reshape(shape))
    here = graph.add("Equal", [graph.unsqueeze(places, [axis]), numbers], "bool", dims)
    return graph.add("Where", [here, on, off], on.dtype, dims)


@operator("Where")
def where(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    found = graph.add("NonZero", [x], INT64, (x.rank, None))
    return transposed(graph, found, [1, 0])


@operator("ReverseV2")
def reverse(graph, op, inputs):  # noqa: D103
    x, axes = inputs
    axes = [int(axis) % x.rank for axis in axes.constant]
    count = len(axes)
    limits = [constant([number] * count, INT64) for number in (-1, np.iinfo("int64").min)]
    inputs = [x, *limits, constant(axes, INT64), constant([-1] * count, INT64)]
    return graph.add("Slice", inputs, x.dtype, x.dims)


@operator("Tile")
def tile(graph, op, inputs):  # noqa: D103
    x, counts = inputs
    known = counts.elements or [None] * x.rank
    if all(isinstance(count, int) and count == 1 for count in known):
        return x
    dims = tuple(_times(size, count) for size, count in zip(x.dims, known, strict=True))
    return graph.add("Tile", [x, _sizes(graph, counts)], x.dtype, dims)


def _times(size, count):
    if isinstance(count, int) and count == 1:
        return size
    if isinstance(size, int):
        return count if size == 1 else size * count if isinstance(count, int) else None
    return None


def _sizes(graph, value):
    """Returns sizes as a vector of int64, from symbols where that avoids a cast."""
    if value.elements is not None and None not in value.elements and value.rank == 1:
        return graph.shape(value.elements)
    return graph.cast(value, INT64)


@operator("BroadcastTo")
def broadcast_to(graph, op, inputs):  # noqa: D103
    x, shape = inputs
    dims = tuple(shape.elements)
    return graph.add("Expand", [x, _sizes(graph, shape)], x.dtype, dims)


@operator("Fill")
def fill(graph, op, inputs):  # noqa: D103
    shape, value = inputs
    dims = tuple(shape.elements) if shape.elements is not None else op.outputs[0].shape.as_list()
    return graph.add("Expand", [value, _sizes(graph, shape)], value.dtype, tuple(dims))


@operator("Pad", "PadV2", "MirrorPad")
def pad(graph, op, inputs):  # noqa: D103
    x, paddings, *value = inputs
    mode = "constant"
    if op.type == "MirrorPad":
        mode = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}[op.get_attr("mode").decode()]
    dims = [None] * x.rank
    if paddings.is_constant:
        before, after = paddings.constant.T.astype(np.int64)
        amounts = constant(np.concatenate([before, after]))
        for axis, size in enumerate(x.dims):
            added = int(before[axis] + after[axis])
            dims[axis] = size if not added else size + added if isinstance(size, int) else None
    else:
        flat = transposed(graph, graph.cast(paddings, INT64), [1, 0])
        amounts = graph.reshape(flat, (2 * x.rank,))
    value = value[0] if value else constant(0, x.dtype)
    inputs = [x, amounts, value] if mode == "constant" else [x, amounts]
    return graph.add("Pad", inputs, x.dtype, tuple(dims), mode=mode)


@operator("Range")
def range_(graph, op, inputs):  # noqa: D103
    start, limit, delta = inputs
    size = None
    if _number(start) == 0 and _number(delta) == 1 and limit.elements is not None:
        size = limit.elements[0]
    return graph.add("Range", inputs, start.dtype, (size,))


def _number(value):
    return value.constant.item() if value.is_constant else None


@operator("MatrixBandPart")
def band(graph, op, inputs):  # noqa: D103
    x, lower, upper = inputs
    rows, columns = (
        graph.add(
            "Range",
            [constant(0, INT64), graph.squeeze(graph.size(size), [0]), constant(1, INT64)],
            INT64,
            (size,),
        )
        for size in x.dims[-2:]
    )
    distance = graph.add(
        "Sub",
        [graph.unsqueeze(columns, [0]), graph.unsqueeze(rows, [1])],
        INT64,
        broadcast((1, x.dims[-1]), (x.dims[-2], 1)),
    )
    kept = None
    for limit, sign in ((lower, -1), (upper, 1)):
        number = int(limit.constant)
        if number < 0:
            continue
        kind = "LessOrEqual" if sign > 0 else "GreaterOrEqual"
        inside = graph.add(kind, [distance, constant(sign * number, INT64)], "bool", distance.dims)
        kept = inside if kept is None else graph.add("And", [kept, inside], "bool", distance.dims)
    if kept is None:
        return x
    return graph.add("Where", [kept, x, constant(0, x.dtype)], x.dtype, x.dims)
