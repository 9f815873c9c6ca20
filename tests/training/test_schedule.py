"""The learning rate equals the paper's formula, computed in plain Python."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.training.schedule import (
    WarmupConstant,
    WarmupInverseSqrt,
    WarmupLinearDecay,
    make_schedule,
    warmup_cosine,
)
from keras_transformer.training.settings.optimizer_sections import ScheduleSettings

STEPS = [*range(50), 99, 100, 101, 3998, 3999, 4000, 4001, 5000, 12_345, 99_999, 1_000_000]


def eq_3(n, d_model, warmup_steps):
    return d_model**-0.5 * min(n**-0.5, n * warmup_steps**-1.5)


@pytest.mark.parametrize(("d_model", "warmup_steps"), [(512, 4000), (1024, 100), (7, 1)])
def test_inverse_sqrt_is_equation_3_with_n_counted_from_one(d_model, warmup_steps):
    schedule = WarmupInverseSqrt(d_model, warmup_steps)
    for step in STEPS:
        expected = eq_3(step + 1, d_model, warmup_steps)
        np.testing.assert_allclose(schedule(step), expected, rtol=1e-6)


def test_inverse_sqrt_peaks_at_the_end_of_the_warm_up():
    rates = [float(WarmupInverseSqrt(512, 40, scale=3.0)(step)) for step in range(100)]
    assert np.argmax(rates) == 39  # the 40th update
    np.testing.assert_allclose(max(rates), 3.0 * (512 * 40) ** -0.5, rtol=1e-6)


def test_linear_rises_to_the_peak_and_ends_at_zero():
    schedule = WarmupLinearDecay(0.002, warmup_steps=10, updates=50)
    rates = [float(schedule(step)) for step in range(60)]
    expected = [0.002 * n / 10 for n in range(1, 11)]
    expected += [0.002 * (50 - n) / 40 for n in range(11, 51)] + [0.0] * 10
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-12)
    assert np.argmax(rates) == 9
    assert rates[49] == 0.0


def test_linear_ends_at_its_final_rate_and_stays_there():
    schedule = WarmupLinearDecay(0.002, warmup_steps=10, updates=50, final=0.0005)
    rates = [float(schedule(step)) for step in range(60)]
    expected = [0.002 * n / 10 for n in range(1, 11)]  # it rises from zero all the same
    expected += [0.0005 + 0.0015 * (50 - n) / 40 for n in range(11, 51)] + [0.0005] * 10
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    flat = WarmupLinearDecay(0.002, warmup_steps=1, updates=3, final=0.002)
    np.testing.assert_allclose([float(flat(step)) for step in range(4)], 0.002, rtol=1e-6)


def test_cosine_ends_at_its_final_rate_and_stays_there():
    schedule = warmup_cosine(0.002, 10, 50, final=0.0005)
    rates = [float(schedule(step)) for step in range(60)]
    expected = [0.002 * n / 10 for n in range(1, 10)]
    expected += [0.0005 + cosine(n, 0.0015, 10, 50) for n in range(10, 61)]
    np.testing.assert_allclose(rates, expected, rtol=1e-4)


def cosine(n, peak, warmup_steps, updates):
    if n < warmup_steps:
        return peak * n / warmup_steps
    done = min(1, (n - warmup_steps) / (updates - warmup_steps))
    return peak * math.cos(math.pi / 2 * done) ** 2  # (1 + cos(2 x)) / 2 = cos(x)^2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("warmup_steps", "updates"), [(10, 50), (1, 7), (2, 3), (1, 2), (400, 977)]
)
def test_cosine_rises_to_the_peak_and_ends_at_zero(warmup_steps, updates):
    """Counted as in the others: the first update has a rate, the peak is at `n = warmup_steps`."""
    schedule = warmup_cosine(0.002, warmup_steps, updates)
    rates = [float(schedule(step)) for step in range(updates + 5)]
    expected = [cosine(n, 0.002, warmup_steps, updates) for n in range(1, updates + 6)]
    np.testing.assert_allclose(rates, expected, rtol=1e-4, atol=1e-9)
    assert np.argmax(rates) == warmup_steps - 1
    assert rates[0] > 0 and rates[updates - 1] == pytest.approx(0, abs=1e-9)


def test_constant_rises_to_the_peak_and_stays():
    rates = [float(WarmupConstant(0.002, 5)(step)) for step in (0, 1, 4, 5, 6, 10**6)]
    np.testing.assert_allclose(rates, [0.0004, 0.0008, 0.002, 0.002, 0.002, 0.002], rtol=1e-6)
    assert float(WarmupConstant(0.002, 1)(0)) == pytest.approx(0.002)


@pytest.mark.parametrize(
    "schedule",
    [
        WarmupInverseSqrt(64, 30, scale=0.5),
        WarmupLinearDecay(0.01, 3, 9, final=0.004),
        WarmupConstant(0.01, 3),
        warmup_cosine(0.01, 3, 9),
    ],
)
def test_a_schedule_survives_serialisation_inside_an_optimizer(schedule):
    optimizer = keras.optimizers.Adam(schedule, beta_2=0.98)
    config = keras.saving.serialize_keras_object(optimizer)
    again = keras.saving.deserialize_keras_object(config)
    for step in (0, 2, 5, 100):
        again.iterations.assign(step)
        np.testing.assert_array_equal(again.learning_rate, schedule(step))


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (WarmupInverseSqrt(64, 30), eq_3(18, 64, 30)),
        (WarmupConstant(0.3, 36), 0.15),
        (warmup_cosine(0.3, 8, 30), cosine(18, 0.3, 8, 30)),
    ],
)
def test_a_schedule_runs_in_a_graph(schedule, expected, jit_compile):
    compiled = tf.function(schedule, jit_compile=jit_compile)
    np.testing.assert_allclose(compiled(tf.constant(17, tf.int64)), expected, rtol=1e-5)


def test_adam_uses_the_rate_of_its_next_update():
    optimizer = keras.optimizers.SGD(WarmupInverseSqrt(4, 8))
    weight = keras.Variable(np.zeros(1, "float32"))
    optimizer.apply([np.ones(1, "float32")], [weight])
    np.testing.assert_allclose(weight.numpy(), [-eq_3(1, 4, 8)], rtol=1e-6)


def test_make_schedule_follows_the_settings():
    paper = make_schedule(ScheduleSettings(warmup_steps=4000), d_model=512, updates=10)
    np.testing.assert_allclose(paper(0), eq_3(1, 512, 4000), rtol=1e-6)
    scaled = ScheduleSettings(warmup_steps=4000, scale=2.0)
    scaled = make_schedule(scaled, d_model=512, updates=10)
    np.testing.assert_allclose(scaled(0), 2 * eq_3(1, 512, 4000), rtol=1e-6)
    peaked = make_schedule(ScheduleSettings(peak=0.01, warmup_steps=5), d_model=3, updates=10)
    np.testing.assert_allclose(max(peaked(step) for step in range(20)), 0.01, rtol=1e-6)
    linear = ScheduleSettings(kind="linear", peak=0.01, warmup_steps=5)
    linear = make_schedule(linear, d_model=3, updates=10)
    np.testing.assert_allclose([linear(4), linear(9)], [0.01, 0.0], rtol=1e-6)
    half = ScheduleSettings(kind="cosine", peak=0.01, warmup_steps=4)
    half = make_schedule(half, d_model=3, updates=10)
    np.testing.assert_allclose([half(3), half(6), half(9)], [0.01, 0.005, 0], rtol=1e-5, atol=1e-9)
    for kind in ("linear", "cosine"):
        high = ScheduleSettings(kind=kind, peak=0.01, warmup_steps=5, final=0.002)
        high = make_schedule(high, d_model=3, updates=10)
        np.testing.assert_allclose([high(4), high(9)], [0.01, 0.002], rtol=1e-5)
    flat = ScheduleSettings(kind="constant", peak=0.01, warmup_steps=5)
    flat = make_schedule(flat, d_model=3, updates=10)
    np.testing.assert_allclose([flat(4), flat(9)], [0.01, 0.01], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: WarmupInverseSqrt(0),
            "`d_model` must be above 0 and finite. Received: d_model=0.",
        ),
        (lambda: WarmupInverseSqrt(8, -1), "`warmup_steps` must be above 0 and finite. .*=-1."),
        (lambda: WarmupInverseSqrt(8, 1, 0.0), "`scale` must be above 0 and finite."),
        (lambda: WarmupLinearDecay(-0.1, 1, 2), "`peak` must be above 0 and finite."),
        (lambda: WarmupLinearDecay(0.1, 1, 0), "`updates` must be above 0 and finite."),
        (lambda: WarmupConstant(0.0, 1), "`peak` must be above 0 and finite."),
        (lambda: warmup_cosine(0.1, 0, 2), "`warmup_steps` must be above 0 and finite."),
        (lambda: warmup_cosine(0.1, 5, 5), "`warmup_steps` must be below `updates`.*=5, .*=5"),
        (lambda: WarmupLinearDecay(0.1, 1, 2, -0.1), "`final` must be from 0 to `peak`.*=-0.1"),
        (lambda: warmup_cosine(0.1, 1, 2, 0.2), "`final` must be from 0 to `peak`.*=0.2, peak=0.1"),
        (lambda: WarmupLinearDecay(0.1, 5, 5), "`warmup_steps` must be below `updates`.*=5, .*=5"),
    ],
)
def test_arguments_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
