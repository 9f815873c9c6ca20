"""Matrix products and convolutions."""

import numpy as np

from keras_transformer.export.onnx.graph.values import broadcast, constant
from keras_transformer.export.onnx.operators.table import operator

# A larger constant is not stored a second time in another layout.
LARGE = 2**18


@operator("MatMul")
def matmul(graph, op, inputs):  # noqa: D103
    a, b = inputs
    flips = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    source = _transposed(b)
    if source is not None and not flips[1]:
        b, flips = source, (flips[0], True)
    first, last = a.dims[flips[0]], b.dims[1 - flips[1]]
    if any(flips):
        flags = {"transA": int(flips[0]), "transB": int(flips[1])}
        return graph.add("Gemm", [a, b], a.dtype, (first, last), **flags)
    return graph.add("MatMul", [a, b], a.dtype, (first, last))


def _transposed(value):
    """Returns the constant matrix that a value is the transpose of, or `None`."""
    if value.made is None or value.made[0] != "Transpose" or not value.made[1][0].is_constant:
        return None
    return value.made[1][0] if value.rank == 2 else None


@operator("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(graph, op, inputs):  # noqa: D103
    flips = op.get_attr("adj_x"), op.get_attr("adj_y")
    a, b = (
        swapped(graph, value) if flip else value for value, flip in zip(inputs, flips, strict=True)
    )
    dims = (*broadcast(a.dims[:-2], b.dims[:-2]), a.dims[-2], b.dims[-1])
    return graph.add("MatMul", [a, b], a.dtype, dims)


def transposed(graph, x, order):
    """Returns a value with its axes in another order, a list of integers."""
    order = [int(axis) for axis in order]
    if order == [*range(x.rank)]:
        return x
    if x.is_constant and x.constant.size <= LARGE:
        return constant(np.transpose(x.constant, order))
    moved = [axis for axis in order if not (isinstance(x.dims[axis], int) and x.dims[axis] == 1)]
    dims = tuple(x.dims[axis] for axis in order)
    if moved == sorted(moved):  # only axes of size 1 move
        return graph.reshape(x, dims)
    return graph.add("Transpose", [x], x.dtype, dims, perm=order)


def swapped(graph, x):
    """Returns a value with its last two axes swapped."""
    return transposed(graph, x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


@operator("Transpose")
def transpose(graph, op, inputs):  # noqa: D103
    x, order = inputs
    return transposed(graph, x, order.constant.tolist())


@operator("Einsum")
def einsum(graph, op, inputs):  # noqa: D103
    equation = op.get_attr("equation").decode()
    terms, result = equation.split("->")
    sizes = {}
    for term, value in zip(terms.split(","), inputs, strict=True):
        sizes.update(zip(term, value.dims, strict=True))
    dims = tuple(sizes[letter] for letter in result)
    return graph.add("Einsum", inputs, inputs[0].dtype, dims, equation=equation)


@operator("Conv2D", "DepthwiseConv2dNative")
def convolution(graph, op, inputs):
    """Convolution of images `[B, H, W, C]`; a sequence is an image of one row."""
    x, kernel = inputs
    deep = op.type == "DepthwiseConv2dNative"
    height, width, channels, count = kernel.dims
    if deep:  # [H, W, C, M] to [C * M, 1, H, W]
        kernel = transposed(graph, kernel, [2, 3, 0, 1])
        kernel = graph.reshape(kernel, (channels * count, 1, height, width))
    else:
        kernel = transposed(graph, kernel, [3, 2, 0, 1])
    padding = op.get_attr("padding").decode()
    options = {
        "strides": list(op.get_attr("strides"))[1:3],
        "dilations": list(op.get_attr("dilations"))[1:3],
        "group": channels if deep else 1,
        "kernel_shape": [height, width],
    }
    if padding == "EXPLICIT":
        before_height, after_height, before_width, after_width = op.get_attr("explicit_paddings")[
            2:6
        ]
        options["pads"] = [before_height, before_width, after_height, after_width]
    else:
        options["auto_pad"] = {"SAME": "SAME_UPPER", "VALID": "VALID"}[padding]
    x = transposed(graph, x, [0, 3, 1, 2])
    features = channels * count if deep else count
    dims = (x.dims[0], features, None, None)
    result = graph.add("Conv", [x, kernel], x.dtype, dims, **options)
    known = [None if size is None else int(size) for size in op.outputs[0].shape.as_list()]
    result.dims = (
        *result.dims[:2],
        *(k or s for k, s in zip(known[1:3], result.dims[2:], strict=True)),
    )
    return transposed(graph, result, [0, 2, 3, 1])
