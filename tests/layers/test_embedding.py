"""Sinusoids against section 3.5; embeddings, learned positions and tied logits."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow
from support import B, D, T, normal, randomise, to_numpy, weights_of

from keras_transformer import PositionalEmbedding
from keras_transformer.positions import sinusoids

V = 19


def exact_sinusoids(positions, d_model):
    """Computes section 3.5 in the widest available floats, angles included."""
    wide = np.longdouble
    i = np.arange(d_model // 2, dtype=wide)
    angle = np.asarray(positions, wide)[:, None] / wide(10000) ** (2 * i / wide(d_model))
    table = np.zeros((len(positions), d_model), wide)
    table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return table


# Digits of the significand, including the hidden one.
PRECISION = {"float32": 24, "bfloat16": 8, "float16": 11}
SMALLEST_EXPONENT = {"float32": -125, "bfloat16": -125, "float16": -13}


def half_a_unit_in_the_last_place(values, dtype):
    """Returns the largest distance from `values` to the nearest number of `dtype`."""
    _, exponent = np.frexp(np.asarray(values, "float64"))
    return 2.0 ** (np.maximum(exponent, SMALLEST_EXPONENT[dtype]) - PRECISION[dtype] - 1)


def assert_rounded(values, exact, dtype):
    """Checks that `values` are `exact`, rounded once to `dtype`.

    Besides half a unit in the last place, it allows 1e-12 for an angle of up to 5,000 in float64,
    and half a unit of float32 for a table that was rounded to float32 first.
    """
    allowed = half_a_unit_in_the_last_place(exact, dtype) + 1e-12
    if dtype != "float32":
        allowed = allowed + half_a_unit_in_the_last_place(exact, "float32")
    error = np.abs(values - exact)
    worst = np.unravel_index(np.argmax(error - allowed), error.shape)
    assert np.all(error <= allowed), f"position, feature {worst}: {values[worst]}, {exact[worst]}"


def test_exact_sinusoids_are_the_formula():
    """Checks the table used in the tests below against Python's own sine, number by number."""
    np.testing.assert_allclose(
        exact_sinusoids(range(97), D).astype("float64"), reference.sinusoids(97, D), atol=1e-13
    )


@pytest.mark.slow
def test_sinusoids_at_positions_0_to_5000(d_model=512):
    table = sinusoids(5001, d_model)
    assert keras.backend.standardize_dtype(table.dtype) == "float32"
    assert_rounded(to_numpy(table), exact_sinusoids(range(5001), d_model), "float32")


def test_the_first_rows_of_the_table():
    """Sine and cosine alternate, the first position is 0, and wavelengths grow from 2 pi."""
    table = to_numpy(sinusoids(3, 4))
    np.testing.assert_allclose(
        table,
        [
            [0, 1, 0, 1],
            [0.84147098, 0.54030231, 0.00999983, 0.99995],
            [0.90929743, -0.41614684, 0.01999867, 0.99980001],
        ],
        atol=1e-7,
    )


def test_positions_0_to_5000_in_the_dtype_of_the_policy(policy):
    """bfloat16 has no exact numbers above 256, so angles need a wider dtype."""
    layer = PositionalEmbedding(V, D)
    tokens = np.zeros((1, 5001), "int32")
    layer.build(tokens.shape)
    layer.set_weights([np.zeros((V, D))])
    out = layer(tokens)
    assert out.dtype == policy.compute_dtype
    assert_rounded(to_numpy(out)[0], exact_sinusoids(range(5001), D), policy.compute_dtype)
    later = layer(tokens[:, :11], start=4990)
    np.testing.assert_array_equal(to_numpy(later)[0], to_numpy(out)[0, 4990:])


@pytest.mark.parametrize("start", [0, 6])
@pytest.mark.parametrize("position", ["sinusoidal", "learned", "none"])
def test_embedding(position, start):
    layer = PositionalEmbedding(V, D, position=position, max_length=T + 6)
    tokens = np.random.default_rng(0).integers(0, V, (B, T)).astype("int32")
    layer.build(tokens.shape)
    weights = weights_of(randomise(layer))
    expected = reference.embedding(weights, tokens, position, start)
    np.testing.assert_allclose(layer(tokens, start=start), expected, rtol=0, atol=1e-5)
    assert weights["table"].shape == (V, D)
    if position == "learned":
        assert weights["positions"].shape == (T + 6, D)
    else:
        assert list(weights) == ["table"]


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "none"])
def test_start_may_be_a_tensor(position):
    """One token at a time, as in a decoder with a cache, gives the same as the sentence at once."""
    layer = PositionalEmbedding(V, D, position=position, max_length=T)
    tokens = np.random.default_rng(0).integers(0, V, (B, T)).astype("int32")
    whole = to_numpy(layer(tokens))
    for t in range(T):
        one = layer(tokens[:, t : t + 1], start=keras.ops.convert_to_tensor(t, "int32"))
        np.testing.assert_allclose(to_numpy(one)[:, 0], whole[:, t], rtol=0, atol=1e-6)


def test_logits_are_products_with_the_rows_of_the_table():
    layer = PositionalEmbedding(V, D)
    layer.build((B, T))
    table = weights_of(randomise(layer))["table"]
    x = normal(B, T, D)
    expected = np.zeros((B, T, V))
    for b, t, v in np.ndindex(expected.shape):
        expected[b, t, v] = x[b, t].astype("float64") @ table[v]
    np.testing.assert_allclose(layer(x, reverse=True), expected, rtol=0, atol=1e-5)


def test_dropout_is_applied_to_the_sum_of_embedding_and_position():
    """Section 5.4: each number is dropped or doubled, also the positions (the table is zero)."""
    layer = PositionalEmbedding(V, D, dropout=0.5)
    tokens = np.ones((B, T), "int32")
    kept = to_numpy(layer(tokens))
    dropped = to_numpy(layer(tokens, training=True))
    zero = dropped == 0
    np.testing.assert_allclose(dropped[~zero], 2 * kept[~zero], rtol=1e-6)
    assert 0.4 < zero.mean() < 0.6
    layer.set_weights([np.zeros((V, D))])
    dropped = to_numpy(layer(tokens, training=True))
    kept = to_numpy(layer(tokens))
    np.testing.assert_allclose(dropped[dropped != 0], 2 * kept[dropped != 0], rtol=1e-6)
    assert 0.4 < (dropped[kept != 0] == 0).mean() < 0.6


def test_an_unknown_position_is_an_error():
    with pytest.raises(ValueError, match=r"`position` must be one of .*Received: position='x'"):
        PositionalEmbedding(V, D, position="x")


def test_an_odd_width_has_no_sinusoids():
    with pytest.raises(ValueError, match=r"`d_model` must be even .*Received: d_model=21"):
        PositionalEmbedding(V, 21)
    assert PositionalEmbedding(V, 21, position="none")(np.ones((1, 2), "int32")).shape == (1, 2, 21)


@pytest.mark.parametrize("start", [0, 4])
def test_more_tokens_than_learned_positions_are_an_error(start):
    layer = PositionalEmbedding(V, D, position="learned", max_length=7)
    assert layer(np.ones((1, 7 - start), "int32"), start=start).shape == (1, 7 - start, D)
    with pytest.raises(ValueError, match=r"`max_length` .*Received: max_length=7, 8 positions"):
        layer(np.ones((1, 8 - start), "int32"), start=start)


@pytest.mark.slow
def test_sinusoids_are_unlimited_if_the_length_is_known():
    layer = PositionalEmbedding(V, D, max_length=7)
    tokens = np.random.default_rng(0).integers(0, V, (B, T)).astype("int32")
    layer.build(tokens.shape)
    expected = reference.embedding(weights_of(randomise(layer)), tokens)
    np.testing.assert_allclose(layer(tokens), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(tf.function(layer)(tokens), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_too_long_an_input_is_never_silently_wrong(position, jit_compile):
    """If the length is known only at run time, the table ends at `max_length`."""
    layer = PositionalEmbedding(V, D, position=position, max_length=7)
    signature = [tf.TensorSpec([None, None], tf.int32)]
    function = tf.function(layer, input_signature=signature, jit_compile=jit_compile)
    assert function(np.ones((B, 7), "int32")).shape == (B, 7, D)
    with pytest.raises(tf.errors.InvalidArgumentError):
        function(np.ones((B, 8), "int32"))


@pytest.mark.parametrize(
    ("length", "position"),
    [
        slow(1, "sinusoidal"),
        slow(1, "learned"),
        (1, "binary"),
        slow(3, "sinusoidal"),
        slow(3, "learned"),
        (3, "binary"),
    ],
)
def test_positions_after_the_table_in_a_compiled_loop(position, length):
    """XLA reads the last rows of a table instead; the positions must be NaN."""
    layer = randomised_embedding(position)
    tokens = np.ones((B, length), "int32")

    @tf.function(jit_compile=True)
    def loop():
        def body(step, array):
            return step + 1, array.write(step, layer(tokens, start=step))

        array = tf.TensorArray(tf.float32, 10, element_shape=(B, length, D))
        return tf.while_loop(lambda step, _: step < 10, body, (0, array))[1].stack()

    places = np.arange(10)[:, None] + np.arange(length)  # [10, T]
    assert_rows(layer, loop(), np.broadcast_to(places[:, None], (10, B, length)))


@pytest.mark.parametrize("policy_name", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_positions_after_the_table_in_16_bits(policy_name):
    keras.config.set_dtype_policy(policy_name)
    layer = randomised_embedding("learned")
    x = tf.function(layer, jit_compile=True)(np.ones((B, 2), "int32"), start=tf.constant(6))
    assert x.dtype == layer.compute_dtype
    np.testing.assert_array_equal(np.isnan(to_numpy(x)).all(-1), [[False, True]] * B)


@pytest.mark.parametrize("run", ["eager", "graph", slow("xla")])
@pytest.mark.parametrize("position", ["sinusoidal", "learned", "binary"])
def test_every_sentence_may_start_at_another_position(position, run):
    layer, tokens = randomised_embedding(position), np.ones((4, 3), "int32")
    function = layer if run == "eager" else tf.function(layer, jit_compile=run == "xla")
    start = np.array([0, 4, 2, 4], "int32")
    places = start[:, None] + np.arange(3)
    for given in (start, start[:, None], tf.constant(start, tf.int64)):
        assert_rows(layer, function(tokens, start=given), places)
    zero = function(tokens, start=start, zero_start=True)
    rows = function(tokens, start=start)
    np.testing.assert_array_equal(zero[1:], rows[1:])
    assert np.abs(to_numpy(zero - rows)[0, 0]).max() > 0.1
    if run == "xla":
        assert_rows(layer, function(tokens, start=start + 2), places + 2)
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 7 is not in \[0, 7\)"):
            function(tokens, start=start + 3)


def randomised_embedding(position):
    """An embedding with 7 positions."""
    layer = PositionalEmbedding(V, D, position=position, max_length=7)
    layer.build((B, T))
    return randomise(layer)


def assert_rows(layer, x, places):
    """Checks `x` `[..., T, D]`: token 1 at positions `places` `[..., T]`, and NaN from 7 on."""
    whole = to_numpy(layer(np.ones((1, 7), "int32")))[0]  # [7, D]
    expected = np.where((places < 7)[..., None], whole[np.minimum(places, 6)], np.nan)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-6)


def test_an_integer_of_numpy_is_a_known_start():
    layer = PositionalEmbedding(V, D, max_length=7)
    tokens = np.ones((1, 3), "int32")
    np.testing.assert_array_equal(layer(tokens, start=np.int64(9)), layer(tokens, start=9))
    learned = PositionalEmbedding(V, D, position="learned", max_length=7)
    with pytest.raises(ValueError, match=r"`max_length` .*Received: max_length=7, 12 positions"):
        learned(tokens, start=np.int64(9))


def test_positions_after_the_sentence_are_never_silently_wrong():
    layer = randomised_embedding("learned")
    tokens, places = np.ones((2, 3), "int32"), np.array([[0, 1, 2], [0, 3, 1]])
    x = tf.function(layer, jit_compile=True)(tokens, places=places)
    assert_rows(layer, x[:1], places[:1])
    assert np.isnan(x[1, 1]).all() and np.isfinite(tf.gather(x[1], [0, 2])).all()


def test_a_start_token_embedded_as_zero_is_the_position_alone(policy):
    """Wherever position 0 is in a row, and at no other position."""
    layer = PositionalEmbedding(V, D)
    tokens = np.random.default_rng(0).integers(0, V, (B, T)).astype("int32")
    plain = layer(tokens)
    changed = layer(tokens, zero_start=True)
    assert changed.dtype == plain.dtype == layer.compute_dtype
    np.testing.assert_allclose(changed[:, 0], np.tile([[0, 1]], (B, D // 2)), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(changed[:, 1:], plain[:, 1:])
    for start in (1, tf.constant(4)):
        later = layer(tokens, start=start, zero_start=True)
        np.testing.assert_array_equal(later, layer(tokens, start=start))
    first = layer(tokens[:, :1], start=tf.constant(0), zero_start=True)
    np.testing.assert_array_equal(first[:, 0], changed[:, 0])
    places = np.tile([*range(T - 4), *range(4)], (B, 1))
    texts = layer(tokens, places=places, zero_start=True)
    expected = np.array(layer(tokens, places=places))
    expected[:, [0, T - 4]] = changed[0, 0]
    np.testing.assert_array_equal(texts, expected)
