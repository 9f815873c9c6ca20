"""Every operator that ONNX has a conversion of returns what TensorFlow's returns."""

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_functions import call, converted  # noqa: E402  (after the modules that it needs)

from keras_transformer.export.errors import ExportError  # noqa: E402
from keras_transformer.export.onnx.operators import OPERATORS  # noqa: E402

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3, 5)).astype("float32")  # [B, S], both of unknown size
Y = RNG.normal(size=(3, 5)).astype("float32")
N = RNG.integers(-9, 9, (3, 5)).astype("int32")
M = RNG.integers(1, 5, (3, 5)).astype("int32")
W = RNG.normal(size=(5, 7)).astype("float32")
T = RNG.normal(size=(3, 5, 7)).astype("float32")
SPECIAL = np.array([[1, np.inf, -np.inf, np.nan, 0]], "float32")
KERNEL = RNG.normal(size=(3, 7, 2)).astype("float32")
TABLE = tf.Variable(W)
LARGE = RNG.normal(size=(2**16, 5)).astype("float32")
EXTREMES = np.array([[0, 1, 2**16 - 1, 2**31 - 1], [2**31, 2**31 + 1, 2**32 - 1, 5]], "uint32")
raw = tf.raw_ops


def rows(x):
    """The number of rows, a size that is known only when the graph runs."""
    return tf.shape(x)[0]


# Operators, and for each of them functions with their inputs.
UNARY = {
    **{name: X for name in ("Abs", "Ceil", "Cos", "Elu", "Erf", "Erfc", "Exp", "Expm1", "Floor")},
    **{name: X for name in ("Neg", "Relu", "Relu6", "Rint", "Round", "Sigmoid", "Sign", "Sin")},
    **{name: X for name in ("Softplus", "Square", "Tanh", "StopGradient", "PreventGradient")},
    **{name: np.abs(X) + 0.1 for name in ("Log", "Log1p", "Rsqrt", "Sqrt")},
    **{name: X for name in ("Inv", "Reciprocal", "ZerosLike", "OnesLike", "Snapshot")},
    **{name: SPECIAL for name in ("IsFinite", "IsInf", "IsNan")},
    "LogicalNot": X > 0,
}
BINARY = {
    **{name: (X, Y) for name in ("Add", "AddV2", "Mul", "Sub", "Maximum", "Minimum")},
    **{name: (X, Y) for name in ("Div", "RealDiv", "SquaredDifference", "FloorMod")},
    **{name: (N, M) for name in ("FloorDiv", "Equal", "NotEqual", "Greater", "GreaterEqual")},
    **{name: (N, M) for name in ("Less", "LessEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{name: (X > 0, Y > 0) for name in ("LogicalAnd", "LogicalOr")},
    **{name: (M.astype("uint32"), M.astype("uint32")) for name in ("LeftShift", "RightShift")},
    "DivNoNan": (X, (X > 0).astype("float32")),
    "Pow": (np.abs(X), Y),
}
OTHERS = {
    "All": [(lambda x: tf.reduce_all(x, 1), X > 0), (lambda x: tf.reduce_all(x), X > -9)],
    "Any": [(lambda x: tf.reduce_any(x, 0, keepdims=True), X > 0)],
    "ArgMax": [(lambda x: tf.argmax(x, 1, tf.int32), X)],
    "ArgMin": [(lambda x: tf.argmin(x, 0), X)],
    "BatchMatMul": [(lambda x, y: raw.BatchMatMul(x=x, y=y, adj_y=True), T, T)],
    "BatchMatMulV2": [
        (lambda x, y: tf.matmul(x, y, transpose_a=True), T, T),
        (lambda x: tf.matmul(x, tf.constant(T[:1, :2]), transpose_b=True), T),
    ],
    "BatchMatMulV3": [
        (lambda x, y: raw.BatchMatMulV3(x=x, y=y, Tout=tf.float32, adj_x=True), T, T)
    ],
    "BiasAdd": [(lambda x: tf.nn.bias_add(x, W[:, 0]), X)],
    "Bitcast": [
        (lambda x: tf.bitcast(x, tf.int32), EXTREMES),
        (lambda x: tf.bitcast(x, tf.uint32), EXTREMES.astype("int32")),
    ],
    "BroadcastTo": [(lambda x: tf.broadcast_to(x[:, None], [rows(x), 4, tf.shape(x)[1]]), X)],
    "Cast": [
        (lambda x: tf.cast(x, tf.int32), X),
        (lambda x: tf.cast(x > 0, tf.float32), X),
        (lambda x: tf.cast(tf.shape(x)[1], tf.float32) * x, X),
    ],
    "ConcatV2": [
        (lambda x, y: tf.concat([x, y], 1), X, Y),
        (lambda x: tf.concat([x[:, :0], x, tf.zeros([rows(x), 2])], -1), X),
    ],
    "Conv2D": [
        (lambda x: tf.nn.conv1d(x, KERNEL, 2, "SAME"), T),
        (lambda x: tf.nn.conv1d(x, tf.ones([2, 7, 3]), 1, "VALID", dilations=2), T),
    ],
    "Cumsum": [
        (lambda x: tf.cumsum(x, 1), N),
        (lambda x: tf.cumsum(x, 0, exclusive=True, reverse=True), X),
    ],
    "DepthwiseConv2dNative": [
        (
            lambda x: tf.nn.depthwise_conv2d(
                x[:, None], tf.constant(W[None, :3, :, None]), [1, 1, 1, 1], "SAME"
            ),
            T,
        )
    ],
    "Einsum": [(lambda x, y: raw.Einsum(inputs=[x, y], equation="bsd,btd->bst"), T, T)],
    "EnsureShape": [(lambda x: tf.ensure_shape(x, [None, 5]), X)],
    "ExpandDims": [(lambda x: tf.expand_dims(x, -1), X), (lambda x: tf.expand_dims(x, 1), X)],
    "Fill": [
        (lambda x: tf.fill([rows(x), 2], 3), X),
        (lambda x: tf.fill([2, rows(x)], x[0, 1]), X),
    ],
    "Gather": [(lambda x: raw.Gather(params=W, indices=x), M)],
    "GatherNd": [(lambda x: tf.gather_nd(x, [[0, 1], [2, 4]]), X)],
    "GatherV2": [
        (lambda x: tf.gather(tf.constant(W), x), M),
        (lambda x: tf.gather(x, [0, 2], axis=1), T),
        (lambda x, n: tf.gather(x, n, batch_dims=1), T, M),
        (lambda x, n: tf.gather(x, n, axis=2, batch_dims=1), T, M),
        (lambda x, n: tf.gather(x, n, batch_dims=1), X, M - 1),
        (lambda x: x[tf.gather(tf.shape(x), 0) - 1], X),
    ],
    "Identity": [(lambda x: tf.identity(x), X)],
    "IdentityN": [(lambda x, y: raw.IdentityN(input=[x, y])[1], X, N)],
    "LeakyRelu": [(lambda x: tf.nn.leaky_relu(x, 0.3), X)],
    "LogSoftmax": [(lambda x: tf.nn.log_softmax(x), X)],
    "MatMul": [
        (lambda x: tf.matmul(x, W), X),
        (lambda x: tf.matmul(x, tf.constant(W[:, :5]), transpose_b=True), X),
        (lambda x, y: tf.matmul(x, y, transpose_a=True), X, Y),
        (lambda x: tf.matmul(x, tf.transpose(tf.constant(LARGE))), X),
    ],
    "MatrixBandPart": [
        (lambda x: tf.linalg.band_part(x, -1, 0), X),
        (lambda x: tf.linalg.band_part(x, 1, 2), T),
    ],
    "Max": [(lambda x: tf.reduce_max(x, [0, 1]), X), (lambda x: tf.reduce_max(x, -1), N)],
    "Mean": [(lambda x: tf.reduce_mean(x, [1], keepdims=True), T)],
    "Min": [(lambda x: tf.reduce_min(x, 0), N)],
    "MirrorPad": [(lambda x: tf.pad(x, [[0, 0], [1, 2]], "REFLECT"), X)],
    "OneHot": [
        (lambda x: tf.one_hot(x, 5), M),
        (lambda x: tf.one_hot(x, 4, 2.0, -1.0, axis=1), N),
    ],
    "Pack": [
        (lambda x, y: tf.stack([x, y], 1), X, Y),
        (lambda x: tf.stack([rows(x), 7, tf.shape(x)[1]]), X),
    ],
    "Pad": [
        (lambda x: tf.pad(x, [[0, 1], [2, 0]]), X),
        (lambda x: tf.pad(x > 0, [[1, 0], [0, 0]]), X),
    ],
    "PadV2": [
        (lambda x: tf.pad(x, [[0, 0], [0, 9 - tf.shape(x)[1]]], constant_values=4), N),
    ],
    "PlaceholderWithDefault": [
        (lambda x: tf.compat.v1.placeholder_with_default(x, [None, None]), X)
    ],
    "Prod": [
        (lambda x: tf.reduce_prod(x, 1), X),
        (lambda x: tf.reshape(x, [tf.reduce_prod(tf.shape(x)[:1]), 5]), X),
    ],
    "Range": [
        (lambda x: tf.range(tf.shape(x)[1]) + x, N),
        (lambda x: tf.range(1, 3 * rows(x), 2), X),
        (lambda x: x[:1] * tf.range(0.5, 5.0, 1.0), X),
    ],
    "Rank": [(lambda x: raw.Rank(input=x) + tf.cast(x, tf.int32), X)],
    "Reshape": [
        (lambda x: tf.reshape(x, [-1]), X),
        (lambda x: tf.reshape(x, [rows(x) * tf.shape(x)[1], 7]), T),
        (lambda x: tf.reshape(tf.reshape(x, [-1, 7]), [rows(x), tf.shape(x)[1], 7]), T),
        (lambda x: tf.reshape(x, [tf.shape(x)[1], 7, rows(x)]), T),
        (lambda x: tf.reshape(x[:, :0], [rows(x), 0, 7]), T),
    ],
    "ResourceGather": [(lambda x: tf.gather(TABLE, x), M)],
    "ReverseV2": [(lambda x: tf.reverse(x, [1]), X)],
    "ScatterNd": [(lambda x: tf.scatter_nd([[1], [1], [0]], x, [2, 5]), X)],
    "Select": [
        (lambda x, y: raw.Select(condition=x[:, 0] > 0, x=x, y=y), X, Y),
        (lambda x, y: raw.Select(condition=x > 0, x=x, y=y), X, Y),
    ],
    "SelectV2": [
        (lambda x, y: tf.where(x > 0, x, y), X, Y),
        (lambda x, y: tf.where(x[:, :1] > 0, x > y, False), X, Y),
        (lambda x: tf.where(x > 0, x, -1e9), N.astype("float32")),
    ],
    "Shape": [(lambda x: tf.shape(x), X), (lambda x: tf.shape(x, tf.int64)[1], T)],
    "Size": [(lambda x: tf.size(x), X), (lambda x: tf.size(x[:2, :3]), X)],
    "Slice": [
        (lambda x: tf.slice(x, [0, 1], [-1, 3]), X),
        (lambda x: tf.slice(x, [0, rows(x) - 1], [2, rows(x) - 1]), X),
        (lambda x: tf.slice(x, [0, 0], [rows(x), 2]), X),
    ],
    "Softmax": [(lambda x: tf.nn.softmax(x), T)],
    "Split": [(lambda x: tf.split(x, 7, 2)[3], T)],
    "SplitV": [(lambda x: tf.split(x, [2, -1, 1], 2)[1], T)],
    "Squeeze": [
        (lambda x: tf.squeeze(tf.expand_dims(x, 1)), X),
        (lambda x: tf.squeeze(x[:, :1], 1), X),
    ],
    "StridedSlice": [
        (lambda x: x[1:, ::2], X),
        (lambda x: x[..., -1], T),
        (lambda x: x[:, 1, 2:5], T),
        (lambda x: x[:, None, ::-1], X),
        (lambda x: x[:, : rows(x)], X),
        (lambda x: x[rows(x) - 2 :, 1:-1], X),
        (lambda x: x[-1, tf.newaxis, ..., 0], T),
        (lambda x: tf.fill(tf.shape(x)[:-1], 1), T),
        (lambda x: x[:, tf.shape(x)[1] - 1], X),
    ],
    "Sum": [(lambda x: tf.reduce_sum(x, [0, 2]), T), (lambda x: tf.reduce_sum(x, []), X)],
    "TensorScatterAdd": [
        (lambda x: tf.tensor_scatter_nd_add(x, [[0], [0], [2]], tf.ones([3, 5])), X)
    ],
    "TensorScatterMax": [
        (lambda x: tf.tensor_scatter_nd_max(x, [[0], [2]], tf.zeros([2, 5])), X)
    ],
    "TensorScatterUpdate": [
        (lambda x: tf.tensor_scatter_nd_update(x, [[0, 1]], [9.0]), X)
    ],
    "Tile": [
        (lambda x: tf.tile(x, [1, 3]), X),
        (lambda x: tf.tile(x[:1], [rows(x), 1]), X),
    ],
    "TopKV2": [
        (lambda x: tf.math.top_k(x, 2)[0], X),
        (lambda x: tf.math.top_k(x, 3)[1], N),
    ],
    "Transpose": [
        (lambda x: tf.transpose(x, [2, 0, 1]), T),
        (lambda x: tf.transpose(x[:, :1], [1, 0]), X),
        (lambda x: tf.transpose(x), X),
    ],
    "Unpack": [
        (lambda x: tf.unstack(x, 7, 2)[4], T),
        (lambda x: tf.unstack(tf.shape(x))[1] + rows(x), X),
    ],
    "Where": [(lambda x: tf.where(x > 0), X)],
}  # fmt: skip
CASES = {
    **{name: [(lambda x, name=name: getattr(raw, name)(**{_argument(name): x}), x)]
       for name, x in UNARY.items()},
    **{name: [(lambda x, y, name=name: getattr(raw, name)(x=x, y=y), *both)]
       for name, both in BINARY.items()},
    **OTHERS,
}  # fmt: skip


def _argument(name):
    named = {"Elu": "features", "Relu": "features", "Relu6": "features", "Softplus": "features"}
    return named.get(
        name, "input" if name in ("StopGradient", "PreventGradient", "Snapshot") else "x"
    )


def test_every_operator_is_tested():
    lists = {name for name in OPERATORS if name.startswith("TensorList")}  # see `test_loops`
    assert set(CASES) == set(OPERATORS) - lists


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_operator_returns_what_tensorflow_returns(name):
    for function, *inputs in CASES[name]:
        expected = np.asarray(function(*map(tf.constant, inputs)))
        found = call(function, inputs)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", ["Gather", "ResourceGather", "Add", "MatMul", "StridedSlice"])
def test_an_operator_of_a_row_alone_returns_the_row(name):
    """The sizes of the example do not become part of the model."""
    function, *inputs = CASES[name][0]
    if name == "StridedSlice":
        function = lambda x: x[:, 1:]  # noqa: E731
    model = converted(function, inputs)
    whole = call(function, inputs, model)
    alone = call(function, [array[:1] for array in inputs], model)
    np.testing.assert_array_equal(alone, whole[:1])


@pytest.mark.parametrize("name", ["AddV2", "Sub", "Mul", "BitwiseXor", "RightShift"])
def test_unsigned_numbers_wrap_around(name):
    """For two tensors, and for a tensor and a constant."""
    numbers = EXTREMES.reshape(-1, 1), EXTREMES.reshape(1, -1)
    if name == "RightShift":
        numbers = numbers[0], np.array([[0, 1, 8, 31]], "uint32")
    wide = [array.astype(object) for array in numbers]  # Python's integers, of any size
    expected = {
        "AddV2": lambda x, y: x + y,
        "Sub": lambda x, y: x - y,
        "Mul": lambda x, y: x * y,
        "BitwiseXor": lambda x, y: x ^ y,
        "RightShift": lambda x, y: x >> y,
    }[name](*wide) % 2**32  # fmt: skip

    def function(x, y):
        return getattr(raw, name)(x=x, y=y)

    found = call(function, numbers)
    assert found.dtype == np.uint32
    np.testing.assert_array_equal(found, expected)
    for place, factor in enumerate(numbers[1][0]):
        found = call(lambda x, factor=factor: function(x, tf.constant(factor)), numbers[:1])
        np.testing.assert_array_equal(found[:, 0], expected[:, place])


def test_layer_normalisation_is_one_operator():
    import keras

    layer = keras.layers.LayerNormalization(epsilon=1e-3)
    layer.build([None, None, 7])
    layer.gamma.assign(W[0])
    layer.beta.assign(W[1])
    model = converted(layer, [T])
    assert [node.op_type for node in model.graph.node] == ["LayerNormalization", "Identity"]
    np.testing.assert_allclose(call(layer, [T], model), layer(T), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, m, v, g, b: x * g / tf.sqrt(v + 1e-3) + (-m * g / tf.sqrt(v + 1e-3) + b),
        lambda x, m, v, g, b: (
            x * (tf.math.rsqrt(v + 1e-3) * g) + (-(m + 1) * (tf.math.rsqrt(v + 1e-3) * g) + b)
        ),
        lambda x, m, v, g, b: (
            x * (tf.math.rsqrt(v + 1e-3) * g) + (-m * (tf.math.rsqrt(v + 1e-2) * g) + b)
        ),
    ],
)
def test_what_resembles_layer_normalisation_is_computed_as_it_stands(change):
    def function(x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return change(x, mean, variance, tf.constant(W[0]), tf.constant(W[1]))

    np.testing.assert_allclose(call(function, [T]), function(tf.constant(T)), rtol=0, atol=1e-4)


def test_an_operator_with_inputs_that_cannot_be_converted_is_named():
    with pytest.raises(
        ExportError, match=r"operator Sum \(.*\) cannot be converted with such inputs"
    ):
        converted(lambda x: tf.reduce_sum(x, tf.shape(x)[0] - 3), [X])


def test_an_operator_without_a_conversion_is_named():
    with pytest.raises(ExportError, match="no conversion of the operator MatrixInverse"):
        converted(lambda x: tf.linalg.inv(x), [X[:, :3]])
