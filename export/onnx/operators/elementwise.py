"""Operators that compute each element on its own."""

import operator as python

import numpy as np

from keras_transformer.export.onnx.graph.values import broadcast, constant
from keras_transformer.export.onnx.operators.norms import layer_norm
from keras_transformer.export.onnx.operators.table import operator
from keras_transformer.export.onnx.operators.unsigned import EMULATED, UINT32, unsigned

BOOL = np.dtype("bool")

UNARY = {
    **{name: name for name in ("Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Log", "Neg")},
    **{name: name for name in ("Relu", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Tanh")},
    "LogicalNot": "Not",
    "IsNan": "IsNaN",
    "IsInf": "IsInf",
    "Reciprocal": "Reciprocal",
    "Inv": "Reciprocal",
    "Rint": "Round",
    "Round": "Round",
}
BINARY = {
    "Add": "Add",
    "AddV2": "Add",
    "BiasAdd": "Add",
    "Div": "Div",
    "RealDiv": "Div",
    "Maximum": "Max",
    "Minimum": "Min",
    "Mul": "Mul",
    "Pow": "Pow",
    "Sub": "Sub",
}
COMPARISONS = {
    "Equal": "Equal",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
}
BITS = {"BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor"}
# Operators on sizes.
NUMBERS = {
    "Add": python.add,
    "Sub": python.sub,
    "Mul": python.mul,
    "Max": max,
    "Min": min,
}


@operator("Identity", "StopGradient", "PreventGradient", "Snapshot", "EnsureShape")
@operator("PlaceholderWithDefault")
def identity(graph, op, inputs):  # noqa: D103
    return inputs[0]


@operator("IdentityN")
def identity_n(graph, op, inputs):  # noqa: D103
    return list(inputs)


@operator(*UNARY)
def unary(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    dtype = BOOL if op.type in ("IsNan", "IsInf", "LogicalNot") else x.dtype
    return graph.add(UNARY[op.type], [x], dtype, x.dims)


@operator(*BINARY)
def binary(graph, op, inputs):  # noqa: D103
    if BINARY[op.type] == "Add":
        normalized = layer_norm(graph, *inputs)
        if normalized is not None:
            return normalized
    return arithmetic(graph, BINARY[op.type], *inputs)


def arithmetic(graph, kind, a, b):
    """Returns the result of an ONNX operator with two inputs and broadcasting."""
    if kind == "Mul" and (_is(b, 1) or _is(a, 1)):
        a, b = (a, b) if _is(b, 1) else (b, a)
        if a.rank >= b.rank:
            return a
    if kind == "Add" and (_is(b, 0) or _is(a, 0)):
        a, b = (a, b) if _is(b, 0) else (b, a)
        if a.rank >= b.rank:
            return a
    if kind in EMULATED and a.dtype == UINT32:
        return unsigned(graph, kind, a, b)
    return graph.add(kind, [a, b], a.dtype, broadcast(a.dims, b.dims), _numbers(kind, a, b))


def _is(value, number):
    """Returns whether a value is a constant scalar, or a vector of one, with this number."""
    return value.is_constant and value.constant.size == 1 and value.constant.item() == number


def _numbers(kind, a, b):
    """Returns the elements of the result, as far as they are known; see `Value`."""
    if kind not in NUMBERS or a.elements is None or b.elements is None:
        return None
    size = max(len(a.elements), len(b.elements))
    columns = (
        value.elements * size if len(value.elements) == 1 else value.elements for value in (a, b)
    )
    return [
        NUMBERS[kind](x, y) if isinstance(x, int) and isinstance(y, int) else None
        for x, y in zip(*columns, strict=True)
    ]


@operator(*COMPARISONS)
def comparison(graph, op, inputs):  # noqa: D103
    dims = broadcast(*(value.dims for value in inputs))
    if op.type in ("LogicalAnd", "LogicalOr"):
        for value, other in (inputs, inputs[::-1]):
            if _is(value, op.type == "LogicalAnd") and other.rank >= value.rank:
                return other
    return graph.add(COMPARISONS[op.type], inputs, BOOL, dims)


@operator("NotEqual")
def not_equal(graph, op, inputs):  # noqa: D103
    equal = graph.add("Equal", inputs, BOOL, broadcast(*(value.dims for value in inputs)))
    return graph.add("Not", [equal], BOOL, equal.dims)


@operator("IsFinite")
def is_finite(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    size = graph.add("Abs", [x], x.dtype, x.dims)
    return graph.add("Less", [size, constant(np.inf, x.dtype)], BOOL, x.dims)  # false for NaN


@operator(*BITS)
def bitwise(graph, op, inputs):  # noqa: D103
    dims = broadcast(*(value.dims for value in inputs))
    return graph.add(BITS[op.type], inputs, inputs[0].dtype, dims)


@operator("LeftShift", "RightShift")
def shift(graph, op, inputs):  # noqa: D103
    dims = broadcast(*(value.dims for value in inputs))
    direction = "LEFT" if op.type == "LeftShift" else "RIGHT"
    return graph.add("BitShift", inputs, inputs[0].dtype, dims, direction=direction)


@operator("Cast")
def cast(graph, op, inputs):  # noqa: D103
    return graph.cast(inputs[0], op.get_attr("DstT").as_numpy_dtype)


@operator("Rsqrt")
def rsqrt(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return graph.add("Reciprocal", [graph.add("Sqrt", [x], x.dtype, x.dims)], x.dtype, x.dims)


@operator("Square")
def square(graph, op, inputs):  # noqa: D103
    return arithmetic(graph, "Mul", inputs[0], inputs[0])


@operator("SquaredDifference")
def squared_difference(graph, op, inputs):  # noqa: D103
    difference = arithmetic(graph, "Sub", *inputs)
    return arithmetic(graph, "Mul", difference, difference)


@operator("Log1p")
def log1p(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return graph.add("Log", [arithmetic(graph, "Add", x, constant(1, x.dtype))], x.dtype, x.dims)


@operator("Expm1")
def expm1(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return arithmetic(graph, "Sub", graph.add("Exp", [x], x.dtype, x.dims), constant(1, x.dtype))


@operator("Erfc")
def erfc(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return arithmetic(graph, "Sub", constant(1, x.dtype), graph.add("Erf", [x], x.dtype, x.dims))


@operator("LeakyRelu")
def leaky_relu(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return graph.add("LeakyRelu", [x], x.dtype, x.dims, alpha=float(op.get_attr("alpha")))


@operator("Relu6")
def relu6(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    limits = [constant(limit, x.dtype) for limit in (0, 6)]
    return graph.add("Clip", [x, *limits], x.dtype, x.dims)


@operator("FloorDiv")
def floor_div(graph, op, inputs):
    """Rounds down, while ONNX rounds integers towards zero."""
    a, b = inputs
    if a.dtype.kind == "f":
        quotient = arithmetic(graph, "Div", a, b)
        return graph.add("Floor", [quotient], a.dtype, quotient.dims)
    if _is(b, 1) and a.rank >= b.rank:
        return a
    return arithmetic(graph, "Div", arithmetic(graph, "Sub", a, _modulo(graph, a, b)), b)


@operator("FloorMod")
def floor_mod(graph, op, inputs):  # noqa: D103
    a, b = inputs
    if a.dtype.kind != "f":
        return _modulo(graph, a, b)
    quotient = arithmetic(graph, "Div", a, b)
    whole = graph.add("Floor", [quotient], a.dtype, quotient.dims)
    return arithmetic(graph, "Sub", a, arithmetic(graph, "Mul", whole, b))


def _modulo(graph, a, b):
    return graph.add("Mod", [a, b], a.dtype, broadcast(a.dims, b.dims))


@operator("DivNoNan")
def div_no_nan(graph, op, inputs):  # noqa: D103
    a, b = inputs
    zero = constant(0, a.dtype)
    is_zero = graph.add("Equal", [b, zero], BOOL, b.dims)
    safe = graph.add("Where", [is_zero, constant(1, a.dtype), b], b.dtype, b.dims)
    quotient = arithmetic(graph, "Div", a, safe)
    return graph.add("Where", [is_zero, zero, quotient], a.dtype, quotient.dims)


@operator("SelectV2", "Select")
def select(graph, op, inputs):  # noqa: D103
    condition, a, b = inputs
    if op.type == "Select" and condition.rank == 1 and a.rank > 1:  # selects whole rows
        condition = graph.unsqueeze(condition, [*range(1, a.rank)])
    dims = broadcast(*(value.dims for value in (condition, a, b)))
    if a.dtype != BOOL:
        return graph.add("Where", [condition, a, b], a.dtype, dims)
    # ONNX Runtime selects no booleans.
    chosen = graph.add("And", [condition, a], BOOL, broadcast(condition.dims, a.dims))
    others = graph.add("Not", [condition], BOOL, condition.dims)
    rest = graph.add("And", [others, b], BOOL, broadcast(condition.dims, b.dims))
    return graph.add("Or", [chosen, rest], BOOL, dims)


@operator("ZerosLike")
def zeros_like(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return graph.add("Expand", [constant(0, x.dtype), graph.shape(x.dims)], x.dtype, x.dims)


@operator("OnesLike")
def ones_like(graph, op, inputs):  # noqa: D103
    (x,) = inputs
    return graph.add("Expand", [constant(1, x.dtype), graph.shape(x.dims)], x.dtype, x.dims)
