"""The loss without whole logits equals the loss of the logits, for any size of chunks."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from marks import slow

from keras_transformer.training.losses import projected as projection
from keras_transformer.training.losses.cross_entropy import smoothed_cross_entropy
from keras_transformer.training.losses.projected import projected_cross_entropy
from keras_transformer.training.losses.r_drop import RDrop
from keras_transformer.training.losses.sim_cut import SimCut

N, D, V = 23, 5, 13


def reference(hidden, table, labels, weights, smoothing, bias=None):
    """Returns smoothed cross-entropy and gradients, one position at a time, in float64."""
    loss, by_hidden, by_table = 0.0, np.zeros_like(hidden), np.zeros_like(table)
    by_bias = np.zeros(len(table))
    for n in range(len(hidden)):
        z = np.array([hidden[n] @ row for row in table])
        z += 0 if bias is None else bias
        p = np.exp(z - z.max())
        p /= p.sum()
        target = np.full(len(table), smoothing / len(table))
        target[labels[n]] += 1 - smoothing
        loss -= weights[n] * (target @ np.log(p))
        by_z = weights[n] * (p - target)
        for v in range(len(table)):
            by_hidden[n] += by_z[v] * table[v]
            by_table[v] += by_z[v] * hidden[n]
            by_bias[v] += by_z[v]
    return loss, by_hidden, by_table, *([] if bias is None else [by_bias])


def example(scale=1.0, seed=0):
    random = np.random.default_rng(seed)
    weights = random.uniform(0, 1, N) * (random.uniform(0, 1, N) > 0.3)
    return (
        scale * random.normal(size=(N, D)),
        random.normal(size=(V, D)),
        random.integers(0, V, N),
        weights,
    )


def measure(hidden, table, labels, weights, smoothing, dtype="float32", bias=None, **options):
    tensors = [tf.constant(hidden, dtype), tf.constant(table, dtype)]
    tensors += [] if bias is None else [tf.constant(bias, "float32")]

    def loss_and_gradients(hidden, table, bias=None):
        watched = [hidden, table, *([] if bias is None else [bias])]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            weight = tf.constant(weights, "float32")
            loss = projected_cross_entropy(
                hidden, table, tf.constant(labels), weight, smoothing, bias=bias
            )
            tripled = 3 * loss
        return loss, *tape.gradient(tripled, watched)

    return tf.function(loss_and_gradients, **options)(*tensors)


@pytest.mark.parametrize(
    ("rows", "smoothing"), [slow(1, 0.0), (6, 0.1), slow(23, 0.1), slow(100, 0.1)]
)
def test_loss_and_gradients_follow_the_formula(monkeypatch, rows, smoothing):
    monkeypatch.setattr(projection, "CHUNK_BYTES", rows * 4 * V)
    loss, by_hidden, by_table = measure(*example(), smoothing)
    expected, expected_by_hidden, expected_by_table = reference(*example(), smoothing)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(by_hidden, 3 * expected_by_hidden, atol=1e-5)
    np.testing.assert_allclose(by_table, 3 * expected_by_table, atol=1e-5)


@pytest.mark.parametrize(("gap", "jit_compile"), [(60, False), (100, False), (500, True)])
def test_labels_with_a_probability_of_almost_zero(gap, jit_compile):
    """Without a probability above 1e-30 at each label, the sum of exponentials is still precise."""
    table = np.eye(V, D)
    hidden = np.array([gap * table[1], 1.5 * table[2]])
    given = hidden, table, [0, 3], [0.5, 2.0]
    loss, *gradients = measure(*given, 0.1, jit_compile=jit_compile)
    expected, *expected_gradients = reference(*given, 0.1)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    for gradient, wanted in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, 3 * wanted, rtol=1e-5, atol=1e-5)


def test_a_chunk_has_no_more_rows_than_are_fast(monkeypatch):
    """The number of rows does not change the result."""
    whole = measure(*example(), 0.1)
    monkeypatch.setattr(projection, "CHUNK_ROWS", 4)
    for tensor, wanted in zip(measure(*example(), 0.1), whole, strict=True):
        np.testing.assert_allclose(tensor, wanted, atol=1e-5)


def logits_bias():
    return np.random.default_rng(9).normal(size=V)


@pytest.mark.parametrize(
    ("rows", "smoothing", "jit_compile"), [slow(1, 0.0, False), (23, 0.1, True)]
)
def test_an_output_bias(monkeypatch, rows, smoothing, jit_compile):
    monkeypatch.setattr(projection, "CHUNK_BYTES", rows * 4 * V)
    bias = logits_bias()
    loss, *gradients = measure(*example(), smoothing, bias=bias, jit_compile=jit_compile)
    expected, *expected_gradients = reference(*example(), smoothing, bias)
    assert abs(expected - reference(*example(), smoothing)[0]) > 1
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    for gradient, wanted in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, 3 * wanted, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("consistency", [None, RDrop(5.0), SimCut(3.0)])
def test_with_a_bias_it_equals_the_loss_of_whole_logits(monkeypatch, smoothing, consistency):
    """With two passes a bias is another feature that is always 1: the same loss and gradient."""
    monkeypatch.setattr(projection, "CHUNK_BYTES", 6 * 4 * V)
    hidden, table, labels, weights = (x[:22] if len(x) == N else x for x in example())
    labels, weights = np.tile(labels[:11], 2), np.tile(weights[:11], 2)
    bias = tf.constant(logits_bias(), "float32")
    hidden, table = tf.constant(hidden, "float32"), tf.constant(table, "float32")
    others = tf.constant(labels), tf.constant(weights, "float32"), smoothing
    with tf.GradientTape() as tape:
        tape.watch([hidden, table, bias])
        loss = projected_cross_entropy(hidden, table, *others, consistency, bias)
    gradients = tape.gradient(loss, [hidden, table, bias])
    with tf.GradientTape() as tape:
        tape.watch([hidden, table, bias])
        if consistency is not None:
            wide = tf.concat([hidden, tf.ones_like(hidden[:, :1])], axis=1)
            wider = tf.concat([table, bias[:, None]], axis=1)
            whole = projected_cross_entropy(wide, wider, *others, consistency)
        else:
            logits = tf.matmul(hidden, table, transpose_b=True) + bias
            losses = smoothed_cross_entropy(labels, logits, smoothing)
            whole = tf.reduce_sum(others[1] * losses)
    np.testing.assert_allclose(loss, whole, rtol=1e-5)
    for mine, theirs in zip(gradients, tape.gradient(whole, [hidden, table, bias]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-5)


@pytest.mark.parametrize("rows", [1, 6, 23])
def test_metrics_of_a_validation_with_a_bias(monkeypatch, rows):
    monkeypatch.setattr(projection, "CHUNK_BYTES", rows * 4 * V)
    hidden, table, labels, weights = example()
    z = hidden @ table.T + logits_bias()
    tensors = [tf.constant(x, "float32") for x in (hidden, table)]
    others = tf.constant(labels), tf.constant(weights, "float32"), 0.1
    bias = tf.constant(logits_bias(), "float32")
    figures = projection.projected_metrics(*tensors, *others, bias)
    expected = [
        reference(hidden, table, labels, weights, 0.1, logits_bias())[0],
        reference(hidden, table, labels, weights, 0.0, logits_bias())[0],
        weights @ (z.argmax(axis=1) == labels),
    ]
    np.testing.assert_allclose(figures, expected, rtol=1e-5)


@pytest.mark.slow
def test_xla_and_an_unknown_number_of_positions(monkeypatch):
    monkeypatch.setattr(projection, "CHUNK_BYTES", 6 * 4 * V)
    expected = reference(*example(), 0.1)
    signature = [tf.TensorSpec([None, D]), tf.TensorSpec([V, D])]
    for options in ({"jit_compile": True}, {"input_signature": signature}):
        loss, by_hidden, by_table = measure(*example(), 0.1, **options)
        np.testing.assert_allclose(loss, expected[0], rtol=1e-6)
        np.testing.assert_allclose(by_hidden, 3 * expected[1], atol=1e-5)
        np.testing.assert_allclose(by_table, 3 * expected[2], atol=1e-5)


def test_an_empty_batch_of_positions():
    hidden, table, labels, weights = example()
    loss, by_hidden, by_table = measure(hidden[:0], table, labels[:0], weights[:0], 0.1)
    assert loss == 0
    assert by_hidden.shape == (0, D)
    np.testing.assert_array_equal(by_table, np.zeros((V, D)))


def test_large_logits_do_not_overflow():
    """Logits of some hundreds, for which most probabilities are zero in float32."""
    loss, by_hidden, by_table = measure(*example(scale=200), 0.1)
    assert np.isfinite(loss)
    hidden, table, labels, weights = example(scale=200)
    z = hidden @ table.T
    normalizer = z.max(1) + np.log(np.exp(z - z.max(1, keepdims=True)).sum(1))
    target = 0.9 * z[np.arange(N), labels] + 0.1 * z.mean(1)
    np.testing.assert_allclose(loss, weights @ (normalizer - target), rtol=1e-5)
    assert np.isfinite(by_hidden).all() and np.isfinite(by_table).all()


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 0.03), ("float16", 0.004)])
def test_half_precision_is_as_accurate_as_its_rounding(dtype, tolerance):
    loss, by_hidden, by_table = measure(*example(), 0.1, dtype)
    expected = reference(*example(), 0.1)
    assert loss.dtype == "float32" and by_hidden.dtype == by_table.dtype == dtype
    np.testing.assert_allclose(loss, expected[0], rtol=tolerance)
    np.testing.assert_allclose(tf.cast(by_hidden, "float32"), 3 * expected[1], atol=6 * tolerance)
    np.testing.assert_allclose(tf.cast(by_table, "float32"), 3 * expected[2], atol=6 * tolerance)


def relative_error(actual, expected):
    actual = tf.cast(actual, "float64").numpy()
    return np.abs(actual - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 0.01), ("float16", 0.002)])
def test_small_weights_lose_no_digits(dtype, tolerance):
    """Weights of one in 100,000 tokens, and a loss that is scaled up as in float16."""
    hidden, table, labels, weights = example()
    hidden, table = (np.asarray(tf.cast(tf.cast(x, dtype), "float64")) for x in (hidden, table))
    weights = (weights > 0) * 1e-5
    _, *expected = reference(hidden, table, labels, weights, 0.1)
    with tf.GradientTape() as tape:
        half = [tf.constant(x, dtype) for x in (hidden, table)]
        tape.watch(half)
        loss = 2.0**15 * projected_cross_entropy(
            *half, tf.constant(labels), tf.constant(weights, "float32"), 0.1
        )
    for gradient, wanted in zip(tape.gradient(loss, half), expected, strict=True):
        assert relative_error(gradient, 2.0**15 * wanted) < tolerance


@pytest.mark.half_precision
def test_a_confident_model_still_has_a_gradient_in_bfloat16():
    """A label at 0.9985, which is 1 in bfloat16: the rest to learn is not rounded away."""
    table = np.eye(D)
    hidden = 8.0 * table[:1]  # label 0 at e^8 / (e^8 + 4)
    _, expected, _ = reference(hidden, table, [0], [1.0], 0.0)
    _, by_hidden, _ = measure(hidden, table, [0], [1.0], 0.0, "bfloat16")
    assert relative_error(by_hidden, 3 * expected) < 0.02


def test_no_tensor_contains_all_logits(monkeypatch):
    """Every tensor of the graph, forward and backward, is smaller than [N, V]."""
    monkeypatch.setattr(projection, "CHUNK_BYTES", 6 * 4 * V)
    hidden, table, labels, weights = example()

    @tf.function
    def gradients(hidden, table):
        with tf.GradientTape() as tape:
            tape.watch([hidden, table])
            loss = projected_cross_entropy(
                hidden, table, tf.constant(labels), tf.constant(weights, "float32"), 0.1
            )
        return tape.gradient(loss, [hidden, table])

    graph = gradients.get_concrete_function(
        tf.TensorSpec([N, D]), tf.TensorSpec([V, D])
    ).graph.as_graph_def(add_shapes=True)
    functions = [function.node_def for function in graph.library.function]
    shapes = [
        [dimension.size for dimension in shape.dim]
        for node in itertools.chain(graph.node, *functions)
        for shape in node.attr["_output_shapes"].list.shape
    ]
    assert [6, V] in shapes  # the logits of a chunk, which shows that the search works
    assert max(np.prod(shape) for shape in shapes if shape and min(shape) > 0) < N * V
