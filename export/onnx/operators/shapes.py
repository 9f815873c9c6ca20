"""Operators that compute with sizes, or change the shape of a tensor."""

import numpy as np

from keras_transformer.export.onnx.graph.values import constant
from keras_transformer.export.onnx.operators.table import operator

INT64 = np.dtype("int64")
LAST, FIRST = np.iinfo("int64").max, np.iinfo("int64").min


@operator("Shape")
def shape(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    sizes = graph.shape(x.dims)
    sizes = sizes if sizes.is_constant else _with(sizes, list(x.dims))
    return graph.cast(sizes, op.get_attr("out_type").as_numpy_dtype)


def _with(value, elements):
    value.elements = elements
    return value


@operator("Size")
def size(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    dtype = op.get_attr("out_type").as_numpy_dtype
    if all(isinstance(number, int) for number in x.dims):
        return constant(int(np.prod(x.dims)), dtype)
    return graph.cast(graph.add("Size", [x], INT64, ()), dtype)


@operator("Rank")
def rank(graph, op, inputs):  # noqa: D103
    return constant(inputs[0].rank, "int32")


@operator("Reshape")
def reshape(graph, op, inputs):  # noqa: D103
    x, shape = inputs
    static = op.outputs[0].shape.as_list()
    known = shape.elements or [None] * len(static)
    dims = [
        number if size is None or (isinstance(size, int) and size < 0) else size
        for size, number in zip(known, static, strict=True)
    ]
    missing = [axis for axis, number in enumerate(dims) if number is None]
    if len(missing) == 1:
        found = _rest(x.dims, dims)
        if found is not None:
            dims[missing[0]] = found
            missing = []
    if not missing:
        return graph.reshape(x, tuple(dims))
    if len(missing) > 1:
        return graph.add("Reshape", [x, graph.cast(shape, INT64)], x.dtype, tuple(dims))
    target = [-1 if number is None else number for number in dims]
    return graph.add("Reshape", [x, _target(graph, x.dims, target)], x.dtype, tuple(dims))


def _target(graph, before, target):
    """Returns a shape with one -1; sizes of the same axis are copied by a 0."""
    result = []
    for axis, number in enumerate(target):
        if isinstance(number, int):
            result.append(constant([number], INT64))
        elif axis < len(before) and before[axis] is number:
            result.append(constant([0], INT64))
        else:
            result.append(graph.size(number))
    if all(value.is_constant for value in result):
        return constant(np.concatenate([value.constant for value in result]))
    return graph.add("Concat", result, INT64, (len(result),), axis=0)


def _rest(before, dims):
    """Returns the size that makes both shapes equally large, `None` if it is not known."""
    before, dims = list(before), [size for size in dims if size is not None]
    for size in [size for size in dims if not isinstance(size, int)]:
        if size not in before:
            return None
        before.remove(size)
        dims.remove(size)
    symbols = [size for size in before if not isinstance(size, int)]
    factor = int(np.prod([size for size in before if isinstance(size, int)]))
    divisor = int(np.prod(dims))
    if not symbols:
        return factor // divisor if divisor else None
    return symbols[0] if len(symbols) == 1 and factor == divisor else None


@operator("ExpandDims")
def expand_dims(graph, op, inputs):  # noqa: D103
    x, axis = inputs
    return graph.unsqueeze(x, [int(axis.constant.item()) % (x.rank + 1)])


@operator("Squeeze")
def squeeze(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    axes = [axis % x.rank for axis in op.get_attr("squeeze_dims")]
    axes = axes or [axis for axis, number in enumerate(x.dims) if number == 1]
    return graph.squeeze(x, axes)


@operator("Pack")
def pack(graph, op, inputs):  # noqa: D103
    axis = op.get_attr("axis") % (inputs[0].rank + 1)
    elements = None
    if inputs[0].rank == 0 and inputs[0].dtype.name in ("int32", "int64"):
        elements = [None if value.elements is None else value.elements[0] for value in inputs]
    rows = [graph.unsqueeze(value, [axis]) for value in inputs]
    return _joined(graph, rows, axis, elements)


@operator("ConcatV2")
def concat(graph, op, inputs):  # noqa: D103
    *parts, axis = inputs
    elements = None
    if parts[0].rank == 1 and all(value.elements is not None for value in parts):
        elements = [element for value in parts for element in value.elements]
    return _joined(graph, parts, int(axis.constant) % parts[0].rank, elements)


def _joined(graph, parts, axis, elements=None):
    parts = [value for value in parts if not _is_zero(value.dims[axis])] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    sizes = [value.dims[axis] for value in parts]
    dims = list(parts[0].dims)
    for value in parts:
        known = [(place, size) for place, size in enumerate(value.dims) if isinstance(size, int)]
        for place, number in known:
            dims[place] = number
    dims[axis] = sum(sizes) if all(isinstance(number, int) for number in sizes) else None
    return graph.add("Concat", parts, parts[0].dtype, tuple(dims), elements, axis=axis)


def _is_zero(number):
    return isinstance(number, int) and number == 0


@operator("Unpack")
def unpack(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    axis = op.get_attr("axis") % x.rank
    dims = tuple(number for place, number in enumerate(x.dims) if place != axis)
    elements = x.elements or [None] * op.get_attr("num")
    return [
        graph.add("Gather", [x, constant(place, INT64)], x.dtype, dims, axis=axis)
        if element is None
        else _number(graph, element, x.dtype)
        for place, element in enumerate(elements)
    ]


@operator("Split", "SplitV")
def split(graph, op, inputs):  # noqa: D103
    if op.type == "Split":
        axis, x = inputs
        count = op.get_attr("num_split")
        axis = int(axis.constant) % x.rank
        sizes = [x.dims[axis] // count] * count
    else:
        x, sizes, axis = inputs
        axis, sizes = int(axis.constant) % x.rank, sizes.constant.tolist()
        if -1 in sizes:
            sizes[sizes.index(-1)] = x.dims[axis] - sum(sizes) - 1
    if len(sizes) == 1:
        return [x]
    outputs = [(x.dtype, (*x.dims[:axis], number, *x.dims[axis + 1 :])) for number in sizes]
    return graph.add_several("Split", [x, constant(sizes, INT64)], outputs, axis=axis)


@operator("Slice")
def slice_(graph, op, inputs):  # noqa: D103
    x, begin, count = inputs
    starts, ends = [], []
    for axis in range(x.rank):
        start, number = _item(graph, begin, axis), _item(graph, count, axis)
        starts.append(start)
        if isinstance(number, int) and number == -1:
            ends.append(LAST)
        elif isinstance(start, int) and isinstance(number, int):
            ends.append(start + number)
        elif isinstance(start, int) and start == 0:
            ends.append(number)
        else:
            ends.append(
                graph.add("Add", [_vector(graph, start), _vector(graph, number)], INT64, (1,))
            )
    static = op.outputs[0].shape.as_list()
    return _sliced(graph, x, [*range(x.rank)], starts, ends, [1] * x.rank, static)


@operator("StridedSlice")
def strided_slice(graph, op, inputs):  # noqa: D103
    x, begin, end, strides = inputs
    masks = {
        name: op.get_attr(f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    count = begin.dims[0]
    new = [place for place in range(count) if masks["new_axis"] >> place & 1]
    axis, axes, starts, ends, steps, shrunk, added = 0, [], [], [], [], [], []
    place_in_result = 0
    for place in range(count):
        if masks["ellipsis"] >> place & 1:
            later = sum(other > place and other not in new for other in range(count))
            skipped = x.rank - later - axis
            axis, place_in_result = axis + skipped, place_in_result + skipped
            continue
        if place in new:
            added.append(place_in_result)
            place_in_result += 1
            continue
        step = int(strides.constant[place])
        first, last = _item(graph, begin, place), _item(graph, end, place)
        if masks["shrink_axis"] >> place & 1:
            shrunk.append((axis, first))
        else:
            if masks["begin"] >> place & 1:
                first = 0 if step > 0 else LAST
            if masks["end"] >> place & 1:
                last = LAST if step > 0 else FIRST
            if not (isinstance(first, int) and first == 0 and _is(last, LAST) and step == 1):
                axes.append(axis)
                starts.append(first)
                ends.append(last)
                steps.append(step)
            place_in_result += 1
        axis += 1
    if x.elements is not None and x.rank == 1:
        known = _known(x, axes, starts, ends, steps, shrunk)
    else:
        known = None
    result = _sliced(graph, x, axes, starts, ends, steps)
    for removed, (place, index) in enumerate(shrunk):
        axis = place - removed
        dims = tuple(number for place, number in enumerate(result.dims) if place != axis)
        if isinstance(index, int):
            index = constant(index, INT64)
        else:
            index = graph.squeeze(_vector(graph, index), [0])
        if known is not None and known[0] is not None:
            return _number(graph, known[0], x.dtype)
        if result.is_constant and index.is_constant:
            result = constant(np.take(result.constant, int(index.constant), axis))
        else:
            result = graph.add("Gather", [result, index], result.dtype, dims, axis=axis)
    result = graph.unsqueeze(result, added)
    if known is not None and result.elements is None:
        result.elements = known
    return result


def _number(graph, element, dtype):
    """Returns an integer or a `Symbol` as a scalar."""
    if isinstance(element, int):
        return constant(element, dtype)
    size = graph.squeeze(graph.size(element), [0])
    return graph.cast(_with(size, [element]), dtype)


def _known(x, axes, starts, ends, steps, shrunk):
    """Returns the elements of a part of a vector of sizes, or `None`."""
    if shrunk:
        index = shrunk[0][1]
        return [x.elements[index]] if isinstance(index, int) else None
    if not axes:
        return x.elements
    limits = starts[0], ends[0]
    if not all(isinstance(limit, int) for limit in limits):
        return None
    first, last = (None if limit in (LAST, FIRST) else limit for limit in limits)
    return x.elements[first : last : steps[0]]


def _is(value, number):
    return isinstance(value, int) and value == number


def _item(graph, vector, place):
    """Returns an element of a vector: an integer, a `Symbol`, or a vector of one int64."""
    if vector.elements is not None and vector.elements[place] is not None:
        return vector.elements[place]
    taken = graph.add("Gather", [vector, constant([place], INT64)], vector.dtype, (1,), axis=0)
    return graph.cast(taken, INT64)


def _vector(graph, item):
    """Returns a result of `_item` as a vector of one int64."""
    return item if hasattr(item, "dtype") else graph.size(item)


def _sliced(graph, x, axes, starts, ends, steps, static=None):
    """Returns a part of a tensor, limited along some axes."""
    rows = []
    dims = list(x.dims)
    for axis, first, last, step in zip(axes, starts, ends, steps, strict=True):
        length = x.dims[axis]
        whole = _is(first, 0) and step == 1 and (_is(last, LAST) or last is length)
        if whole or (_is(first, 0) and step == 1 and _is(last, length) and isinstance(length, int)):
            continue
        rows.append((axis, first, last, step))
        dims[axis] = None if static is None else static[axis]
        numbers = isinstance(first, int) and isinstance(last, int)
        if numbers and isinstance(length, int):
            bounds = (None if limit in (LAST, FIRST) else limit for limit in (first, last))
            dims[axis] = len(range(*slice(*bounds, step).indices(length)))
        elif _is(first, 0) and _is(last, 0):
            dims[axis] = 0
    if not rows:
        return x
    axes, *limits = zip(*rows, strict=True)
    columns = [_column(graph, column) for column in (limits[0], limits[1])]
    inputs = [x, *columns, constant(list(axes), INT64), constant(list(limits[2]), INT64)]
    return graph.add("Slice", inputs, x.dtype, tuple(dims))


def _column(graph, items):
    if all(isinstance(item, int) for item in items):
        return constant(list(items), INT64)
    parts = [_vector(graph, item) for item in items]
    if len(parts) == 1:
        return parts[0]
    return graph.add("Concat", parts, INT64, (len(parts),), axis=0)
