"""Models of time series: equal to the reference, and independent of later steps."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
import reference
from marks import slow_except
from mixer_rows import MIXERS
from support import normal, randomise, to_numpy, weights_of, with_effect

from keras_transformer.layers import SeriesEmbedding
from keras_transformer.models import SeriesConfig, SeriesRegressor, SnowAccount

MODEL = {"rtol": 0, "atol": 1e-4}
ENCODERS = ("transformer", "lstm", "gru", "lstm_attention", "gru_attention")
STEPS = 11
FIELDS = {
    "inputs": ("a", "b", "c"),
    "target": "d",
    "input_mean": (0.5, -1.0, 0.25),
    "input_scale": (1.5, 2.0, 0.5),
    "target_mean": 0.75,
    "target_scale": 3.0,
    "d_model": 10,
    "num_layers": 2,
    "num_heads": 2,
    "d_ff": 17,
    "max_length": 29,
}


@functools.cache
def model_of(encoder, **changes):
    fields = with_effect(SeriesConfig, **{**FIELDS, "encoder": encoder, **changes})
    return randomise(SeriesRegressor(SeriesConfig(**fields)))


def series(seed=0):
    return normal(2, STEPS, 3, seed=seed)


def scaled(values):
    return (values.astype("float64") - FIELDS["input_mean"]) / FIELDS["input_scale"]


def ended(weights, x):
    """Applies the linear output layer and converts to the target's unit."""
    out = reference.dense(reference.scope(weights, "output"), x)[..., 0]
    return out * FIELDS["target_scale"] + FIELDS["target_mean"]


def test_the_transformer_equals_the_reference():
    model = model_of("transformer")
    weights = weights_of(model)
    x = reference.dense(reference.scope(weights, "embedding/projection"), scaled(series()))
    x = x + reference.sinusoids(STEPS, 10)
    past = np.broadcast_to(np.tril(np.ones((STEPS, STEPS), bool)), (2, STEPS, STEPS))
    x = reference.encoder(reference.scope(weights, "encoder"), x, past, 2, 2)
    np.testing.assert_allclose(to_numpy(model(series())), ended(weights, x), **MODEL)


@pytest.mark.parametrize("encoder", ["lstm", "gru", "lstm_attention"])
def test_a_recurrent_encoder_equals_the_reference(encoder):
    model = model_of(encoder)
    weights = weights_of(model)
    kind, x, real = encoder.removesuffix("_attention"), scaled(series()), np.ones((2, STEPS), bool)
    for number in range(2):
        layer = reference.scope(weights, f"{kind}_{number}")
        x = MIXERS[kind].reference(layer, x, real, causal=True)
    if encoder == "lstm_attention":
        past = np.broadcast_to(np.tril(np.ones((STEPS, STEPS), bool)), (2, STEPS, STEPS))
        attended, _ = reference.multi_head(reference.scope(weights, "attention"), x, x, past, 2)
        x = reference.layer_norm(reference.scope(weights, "norm"), x + attended)
    np.testing.assert_allclose(to_numpy(model(series())), ended(weights, x), **MODEL)


def with_layers_of_keras(model):
    """Returns a model with Keras's own recurrent layers, and the other layers of a copy of it."""
    copy = type(model)(model.config)
    copy.set_weights(model.get_weights())
    parts = copy.parts
    kind = model.config.encoder.cells.removesuffix("_attention")
    x = inputs = keras.Input((None, 3))
    x = parts.input(x)
    for ours in parts.encoder.recurrent:
        weights = weights_of(ours)
        bias = weights["forward_bias"]
        if kind == "gru":
            bias = np.stack([weights["forward_input/bias"], bias])
        layer = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[kind](
            len(weights["forward_recurrent_kernel"]), return_sequences=True
        )
        x = layer(x)
        layer.set_weights(
            [weights["forward_input/kernel"], weights["forward_recurrent_kernel"], bias]
        )
    if "attention" in parts.encoder.roles:
        x = parts.encoder.roles["norm"](x + parts.encoder.roles["attention"](x))
    return keras.Model(inputs, parts.head(x))


@pytest.mark.parametrize("encoder", slow_except(ENCODERS[1:], "gru"))
def test_a_training_is_that_of_a_layer_of_keras(encoder):
    """From the same weights, with clipped gradients; Adam would divide by their rounding errors."""
    config = model_of(encoder, dropout=0.0).config
    model = SeriesRegressor(config)  # with the weights that a training begins with
    x, y = normal(16, STEPS, 3), normal(16, STEPS, seed=1)
    outputs = []
    for trained in (with_layers_of_keras(model), model):
        before = to_numpy(trained(x))
        optimizer = keras.optimizers.SGD(0.03, momentum=0.9, global_clipnorm=1.0)
        trained.compile(optimizer, "mse", jit_compile=False)
        trained.fit(x, y, batch_size=8, epochs=4, shuffle=False, verbose=0)
        outputs.append(to_numpy(trained(x)))
        assert np.abs(outputs[-1] - before).max() > 0.1
    np.testing.assert_allclose(*outputs, **MODEL)


@pytest.mark.parametrize("encoder", slow_except(ENCODERS, "gru", "gru_attention"))
def test_no_step_sees_a_later_one(encoder):
    model, one = model_of(encoder), series()
    other = one.copy()
    other[:, 6:] = series(seed=1)[:, 6:]
    first, second = to_numpy(model(one)), to_numpy(model(other))
    np.testing.assert_allclose(first[:, :6], second[:, :6], rtol=0, atol=1e-6)
    assert np.abs(first[:, 6] - second[:, 6]).max() > 1e-3
    past = one.copy()
    past[:, 0] += 1
    assert np.abs(to_numpy(model(past))[:, 6] - first[:, 6]).max() > 1e-6, "but the past it does"


def test_scaling_makes_units_irrelevant():
    """Inputs in other units, with constants of scale to match, give the output in its own unit."""
    model = model_of("transformer")
    factor = np.array([1000.0, 0.1, 10.0])
    changes = {
        "input_mean": tuple(FIELDS["input_mean"] * factor),
        "input_scale": tuple(FIELDS["input_scale"] * factor),
        "target_mean": 7.5,
        "target_scale": 30.0,
    }
    other = SeriesRegressor(dataclasses.replace(model.config, **changes))
    other.set_weights(model.get_weights())
    ours, theirs = to_numpy(model(series())), to_numpy(other((series() * factor).astype("float32")))
    np.testing.assert_allclose(theirs, 10 * ours, rtol=1e-4, atol=1e-3)


def test_the_embedding_is_a_linear_layer_plus_a_position():
    layer = SeriesEmbedding(10, "learned", max_length=STEPS)
    layer(series())
    weights = weights_of(randomise(layer))
    expected = series() @ weights["projection/kernel"] + weights["projection/bias"]
    np.testing.assert_allclose(layer(series()), expected + weights["positions"], atol=1e-5)


def snow_reference(fallen, temperature, factor, offsets):
    """Degree days in each zone in float64, one step at a time: water and snow, `[T]` each."""
    water, snow = np.zeros((2, len(fallen)))
    for offset in offsets:
        lying = 0.0
        for t, (p, warmth) in enumerate(zip(fallen, temperature + offset, strict=True)):
            falls = p * min(max((2 - warmth) / 4, 0), 1)
            melts = min(lying + falls, factor * max(warmth, 0))
            lying += falls - melts
            water[t] += (p - falls + melts) / len(offsets)
            snow[t] += lying / len(offsets)
    return water, snow


def weather(steps=37):
    rng = np.random.default_rng(0)
    fallen = rng.gamma(0.4, 9, (2, steps))
    return np.stack([rng.normal(size=(2, steps)), 6 * rng.normal(size=(2, steps)) - 1, fallen], -1)


@pytest.mark.parametrize(("factor", "offsets"), [(4.0, (-4.5, 0.0, 4.5)), (1.5, (0.0,))])
def test_the_snow_model_equals_the_reference(factor, offsets):
    given = weather()
    out = to_numpy(SnowAccount(2, 1, 37, factor, offsets)(given.astype("float32")))
    for b in range(2):
        water, snow = snow_reference(given[b, :, 2], given[b, :, 1], factor, offsets)
        assert snow.max() > 5 and np.diff(snow).min() < -5, "it comes and goes"
        np.testing.assert_allclose(out[b, :, 2], water, atol=1e-4)
        np.testing.assert_allclose(out[b, :, 1], snow, atol=1e-4)
    np.testing.assert_array_equal(out[..., 0], given[..., 0].astype("float32"))
    assert out[..., 1].min() >= 0 and out[..., 2].min() >= -1e-4


def test_no_water_is_lost():
    given = weather().astype("float32")
    out = to_numpy(SnowAccount(2, 1)(given)).astype("float64")
    np.testing.assert_allclose(
        out[..., 2].sum(axis=1) + out[:, -1, 1], given[..., 2].sum(axis=1), rtol=1e-5
    )


def test_in_a_series_longer_than_the_maximum_old_snow_is_forgotten():
    winter = np.tile(np.array([[[0.0, -9.0, 3.0]]], "float32"), (1, 3, 1))
    long = np.concatenate([np.tile([[[0.0, 9.0, 0.0]]], (1, 1, 1)), winter], axis=1)
    np.testing.assert_allclose(SnowAccount(2, 1, 2, offsets=(0,))(long)[0, :, 1], [0, 3, 3, 3])
    np.testing.assert_allclose(SnowAccount(2, 1, 4, offsets=(0,))(long)[0, :, 1], [0, 3, 6, 9])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), "`precipitation` and `temperature` must be different inputs"),
        ((-1, 0), "`precipitation` must be the index of an input. Received: -1"),
        ((0, 1, 0), "`max_length` must be"),
        ((0, 1, 9, 0.0), "`factor` must be above 0"),
        ((0, 1, 9, 4.0, ()), "`offsets` must not be empty"),
        ((0, 3), "must be indices of inputs, counted from 0. Received: 0 and 3, with 3 inputs"),
    ],
)
def test_wrong_snow_settings_are_reported_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        SnowAccount(*arguments)(weather().astype("float32"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("encoder", ["transformer", "lstm"])
def test_a_model_reads_water_and_snow_instead_of_weather(encoder):
    plain, given = model_of(encoder), weather(STEPS).astype("float32")
    model = model_of(encoder, snow=("c", "b"))
    model.set_weights(plain.get_weights())
    water = SnowAccount(2, 1, FIELDS["max_length"])(given)
    expected = to_numpy(plain(water))
    np.testing.assert_allclose(model(given), expected, rtol=0, atol=1e-4)
    assert np.abs(to_numpy(plain(given)) - expected).max() > 0.01


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (series()[..., :2], "`inputs` must have the 3 features that the layer was built for"),
        (series()[0], r"`inputs` must be \[batch, positions, features\]"),
        (np.zeros((2, 5), "int32"), "`inputs` must be embedded, floating"),
    ],
)
def test_inputs_of_another_shape_are_reported_in_one_line(value, message):
    with pytest.raises((TypeError, ValueError), match=message) as error:
        model_of("lstm")(value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "rnn"}, "`encoder` must be one of transformer, lstm, gru, lstm_attention"),
        ({"input_mean": (0.0,)}, "`inputs`, `input_mean` and `input_scale` must have the same len"),
        ({"input_scale": (1.0, 0.0, 1.0)}, "`input_scale` must be above 0"),
        ({"snow": ("a",)}, "`snow` must name two of the inputs, precipitation and temperature"),
        ({"snow": ("a", "e")}, "`snow` must name two of the inputs"),
        ({"target_scale": 0.0}, "`target_scale` must be above 0"),
    ],
)
def test_wrong_configurations_are_reported_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message):
        SeriesConfig(**{**FIELDS, **changes})


def test_fields_without_effect_depend_on_the_encoder():
    assert "d_ff" not in SeriesConfig.without_effect({})
    assert {"d_ff", "norm", "position", "num_heads"} <= SeriesConfig.without_effect(
        {"encoder": "gru"}
    )
    kept = SeriesConfig.without_effect({"encoder": "gru_attention"})
    assert "num_heads" not in kept and "dropout" not in kept and "d_ff" in kept


@pytest.mark.half_precision
def test_the_global_policy_is_the_default():
    keras.config.set_dtype_policy("mixed_bfloat16")
    assert model_of.__wrapped__("gru", num_layers=1)(series()).dtype == "float32"
