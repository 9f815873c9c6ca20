"""Loops and branches of TensorFlow return the same in ONNX, with all sizes dynamic."""

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_functions import call, converted  # noqa: E402  (after the modules that it needs)

X = np.random.default_rng(3).normal(size=(3, 5)).astype("float32")
W = np.random.default_rng(4).normal(size=(5, 5)).astype("float32") / 3


def nodes(graph):
    """All nodes of a graph and of its bodies, with the depth at which they are."""
    for node in graph.node:
        yield node, 0
        for attribute in node.attribute:
            for inner, depth in nodes(attribute.g):
                yield inner, depth + 1


def powers(x, count=4):
    weights = tf.constant(W)
    _, x = tf.while_loop(
        lambda index, x: index < count, lambda index, x: (index + 1, tf.matmul(x, weights)), (0, x)
    )
    return x


def no_iterations(x):
    return powers(x, 0)


def until_it_is_small(x):
    """The number of iterations depends on the input."""
    return tf.while_loop(lambda x: tf.reduce_max(x) > 0.1, lambda x: (x / 2,), (x,))[0]


def swapped(x):
    _, a, b = tf.while_loop(
        lambda index, a, b: index < 3, lambda index, a, b: (index + 1, b, a), (0, x, x * 2)
    )
    return a - b


def growing(x):
    """The second axis grows by one in every iteration."""
    _, x = tf.while_loop(
        lambda index, x: index < 4,
        lambda index, x: (index + 1, tf.concat([x, x[:, -1:] + 1], 1)),
        (0, x),
        (tf.TensorShape([]), tf.TensorShape([None, None])),
    )
    return x


def empty_at_first(x):
    rows = tf.shape(x)[0]
    _, kept = tf.while_loop(
        lambda index, kept: index < tf.shape(x)[1],
        lambda index, kept: (index + 1, tf.concat([kept, tf.gather(x, [index], axis=1)], 1)),
        (0, tf.zeros([rows, 0])),
        (tf.TensorShape([]), tf.TensorShape([None, None])),
    )
    return kept


def nested(x):
    def outer(index, x):
        return index + 1, powers(x, 2) + tf.cast(index, tf.float32)

    return tf.while_loop(lambda index, x: index < 3, outer, (0, x))[1]


def constant_after_the_first(x):
    """A variable that becomes a constant, and one that becomes an input of the loop."""
    _, a, b = tf.while_loop(
        lambda index, a, b: index < 2,
        lambda index, a, b: (index + 1, tf.constant(7.0), x),
        (0, 1.0, x * 0),
    )
    return a * b


def unread(x):
    """Nothing needs the product."""
    return tf.while_loop(
        lambda index, y, z: index < 3,
        lambda index, y, z: (index + 1, y + 1, tf.matmul(z, tf.constant(W))),
        (0, x, x),
    )[1]


def with_branches(x):
    def step(index, x):
        even = tf.equal(index % 2, 0)
        return index + 1, tf.cond(even, lambda: x * 2, lambda: x[:, ::-1] + 1)

    return tf.while_loop(lambda index, x: index < 3, step, (0, x))[1]


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: tf.concat([x, x], 1)[:, 1:])


def known_branch(x):
    return tf.cond(tf.constant(False), lambda: x, lambda: -x)


def function_in_a_function(x):
    inner = tf.function(lambda y: y * tf.cast(tf.shape(y)[1], tf.float32))
    return inner(x) + inner(x[:, 1:])[:, :1]


def listed(x):
    """A list of tensors whose number and shape are known only when the graph runs."""
    count = tf.shape(x)[1]
    rows = tf.TensorArray(tf.float32, count).unstack(tf.transpose(x))
    sums = tf.TensorArray(tf.float32, count)

    def step(index, total, sums):
        total += rows.read(index)
        return index + 1, total, sums.write(index, total)

    beginning = 0, tf.zeros(tf.shape(x)[:1]), sums
    return tf.while_loop(lambda index, *_: index < count, step, beginning)[2].stack()


def guarded(x):
    """The first branch reads a row that need not exist."""
    count = tf.shape(x)[0]
    ids = tf.range(count)
    return tf.cond(count > 2, lambda: x[2] / tf.cast(ids[2], tf.float32), lambda: x[0])


FUNCTIONS = [
    *(powers, no_iterations, until_it_is_small, swapped, growing, empty_at_first, nested),
    *(constant_after_the_first, unread, with_branches, branch, known_branch),
    *(function_in_a_function, listed, guarded),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_loop_returns_the_same_for_every_size(function):
    model = converted(function, [X])
    for array in (X, -X, X[:1], X[:2]):
        expected = function(tf.constant(array))
        np.testing.assert_allclose(call(None, [array], model), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_a_recurrent_layer_of_keras_returns_the_same(layer, go_backwards):
    import keras

    keras.utils.set_random_seed(1)
    layer = getattr(keras.layers, layer)(4, return_sequences=True, go_backwards=go_backwards)
    inputs = np.random.default_rng(5).normal(size=(3, 6, 5)).astype("float32")
    layer.build(inputs.shape)
    model = converted(layer, [inputs])
    for array in (inputs, inputs[:1, :2], inputs[:2, :1]):
        np.testing.assert_allclose(call(None, [array], model), layer(array), rtol=0, atol=1e-5)


def test_what_does_not_change_is_computed_before_the_loop():
    def function(x):
        return tf.while_loop(
            lambda index, y: index < 3,
            lambda index, y: (index + 1, tf.matmul(y, tf.exp(tf.matmul(x, x, transpose_a=True)))),
            (0, x),
        )[1]

    depths = {node.op_type: depth for node, depth in nodes(converted(function, [X]).graph)}
    assert (depths["Exp"], depths["Gemm"], depths["MatMul"]) == (0, 0, 1)


def test_what_nothing_needs_is_left_out():
    kinds = {node.op_type for node, _ in nodes(converted(unread, [X]).graph)}
    assert "MatMul" not in kinds


def test_equal_operations_are_computed_once():
    def function(x):
        return tf.exp(x) + tf.reduce_sum(tf.exp(x), 1, keepdims=True)

    kinds = [node.op_type for node, _ in nodes(converted(function, [X]).graph)]
    assert kinds.count("Exp") == 1


def test_a_weight_is_stored_once():
    def function(x):
        return tf.matmul(powers(tf.matmul(x, tf.constant(W))), tf.constant(W), transpose_b=True)

    large = [
        weight for weight in converted(function, [X]).graph.initializer if len(weight.dims) == 2
    ]
    assert len(large) == 1
