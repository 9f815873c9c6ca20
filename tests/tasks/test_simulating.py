"""Series in use: metrics by hand, windows, and lines of a CSV file."""

import math

import numpy as np
import pytest
import tensorflow as tf
from support import normal, randomise, to_numpy

from keras_transformer.models import SeriesConfig, SeriesRegressor, SnowAccount
from keras_transformer.pipelines import SeriesSimulator
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.time_series.metrics import kling_gupta, nash_sutcliffe
from keras_transformer.tasks.time_series.table_format import TableFormat
from keras_transformer.tasks.time_series.windows import Windowed, window_of
from keras_transformer.training.tasks.time_series.efficiency import (
    KlingGupta,
    NashSutcliffe,
    ScaledSquaredError,
)
from keras_transformer.training.tasks.time_series.training import windows

INPUTS = ("rain", "warmth")
LENGTH, SCORED = 7, 3
# By hand: means 4 and 5; variances 20 / 4 = 5 and (9 + 4 + 1 + 16) / 4 = 7.5; covariance (-3 * -3 +
# -1 * -2 + 1 * 1 + 3 * 4) / 4 = 6; errors 1, 0, 1 and 2.
OBSERVED, SIMULATED = [1.0, 3.0, 5.0, 7.0], [2.0, 3.0, 6.0, 9.0]


def by_hand():
    r = 6 / math.sqrt(5 * 7.5)
    beta, gamma = 5 / 4, (math.sqrt(7.5) / 5) / (math.sqrt(5) / 4)
    nse = 1 - (1 + 0 + 1 + 4) / 20
    return 1 - math.sqrt((r - 1) ** 2 + (beta - 1) ** 2 + (gamma - 1) ** 2), nse


def test_metrics_equal_those_by_hand():
    kge, nse = by_hand()
    assert kling_gupta(OBSERVED, SIMULATED) == pytest.approx(kge, abs=1e-12)
    assert nash_sutcliffe(OBSERVED, SIMULATED) == pytest.approx(nse, abs=1e-12)
    assert kling_gupta(OBSERVED, OBSERVED) == pytest.approx(1, abs=1e-12)
    assert nash_sutcliffe(OBSERVED, OBSERVED) == 1
    assert nash_sutcliffe(OBSERVED, [4.0] * 4) == 0


def test_a_constant_series_has_no_efficiency():
    assert math.isnan(nash_sutcliffe([2, 2], [1, 3])) and math.isnan(kling_gupta([2, 2], [1, 3]))
    with pytest.raises(ValueError, match="must have the same length and not be empty"):
        nash_sutcliffe([], [])


def test_metrics_of_batches_equal_those_of_all_evaluated_steps():
    rng = np.random.default_rng(0)
    observed, simulated = 100 + rng.gamma(2, size=(2, 3, 4, 5))
    counts = (rng.random((3, 4, 5)) < 0.6).astype("float64")
    known = counts == 1
    for metric, figure in ((KlingGupta(), kling_gupta), (NashSutcliffe(), nash_sutcliffe)):
        for batch in range(3):
            labels = np.stack([observed[batch], counts[batch]], axis=-1).astype("float32")
            weights = None if batch else counts[batch].astype("float32")
            metric.update_state(labels, simulated[batch].astype("float32"), weights)
        expected = figure(observed[known], simulated[known])
        assert float(metric.result()) == pytest.approx(expected, abs=1e-4)
        metric.reset_state()
        labels = np.stack([OBSERVED, np.ones(4)], axis=-1)[None]
        metric.update_state(labels.astype("float32"), np.array([SIMULATED], "float32"))
        assert float(metric.result()) == pytest.approx(figure(OBSERVED, SIMULATED), abs=1e-6)


def test_metrics_take_a_weight_for_each_series():
    """Also with as many series as steps; a step that does not count has no weight anywhere."""
    rng = np.random.default_rng(1)
    observed, simulated = 100 + rng.gamma(2, size=(2, 4, 4))
    counts = (rng.random((4, 4)) < 0.6).astype("float64")
    times = np.array([0, 1, 3, 2])
    copies = [np.repeat(values, times, axis=0) for values in (observed, simulated, counts)]
    known = copies[2] == 1
    labels = np.stack([observed, counts], axis=-1).astype("float32")
    for metric, figure in ((KlingGupta(), kling_gupta), (NashSutcliffe(), nash_sutcliffe)):
        metric.update_state(labels, simulated.astype("float32"), times.astype("float32"))
        expected = figure(copies[0][known], copies[1][known])
        assert float(metric.result()) == pytest.approx(expected, abs=1e-4)


def test_the_loss_is_in_units_of_the_target():
    labels = np.array([[[1, 1], [3, 0], [5, 1]]], "float32")
    losses = ScaledSquaredError(2.0).call(labels, np.array([[2.0, 9.0, 11.0]], "float32"))
    np.testing.assert_allclose(losses, [[0.25, 0.0, 9.0]])


@pytest.mark.parametrize("steps", [3, 5])
def test_weights_of_the_loss_belong_to_series(steps):
    """Also with as many series as steps."""
    simulated = np.random.default_rng(1).normal(size=(3, steps)).astype("float32")
    labels = np.stack([np.zeros((3, steps)), np.ones((3, steps))], axis=-1).astype("float32")
    weights, squares = np.array([2.0, 0.0, 1.0], "float32"), simulated**2
    of_steps = np.repeat(weights[:, None], steps, axis=1)
    for given in (weights, weights[:, None], of_steps):
        loss = ScaledSquaredError()(labels, simulated, given)
        assert float(loss) == pytest.approx(np.mean(of_steps * squares), rel=1e-5)
    with pytest.raises(ValueError, match=r"`sample_weight` must be \[3\].* shape=\[4\]"):
        ScaledSquaredError()(labels, simulated, np.ones(4))


# Windows


def test_every_step_has_exactly_one_window_with_enough_history():
    for step in range(40):
        start = window_of(step, LENGTH, SCORED)
        assert start <= step < start + LENGTH
        if step >= LENGTH:
            assert step >= start + LENGTH - SCORED and start % SCORED == 0


def test_windows_of_a_validation_count_every_known_step_once():
    """Each step is in the window that computes its output in use."""
    steps = 24
    target = np.arange(steps, dtype="float32")
    target[[0, 1, 5, 17]] = np.nan
    inputs = np.stack([np.arange(steps)] * 2, axis=1).astype("float32")
    cut, labels = windows(inputs, target, LENGTH, SCORED, SCORED)
    assert cut.shape[1:] == (LENGTH, 2) and labels.shape == (*cut.shape[:2], 2)
    counted = {}
    for number, t in zip(*np.nonzero(labels[..., 1]), strict=True):
        step = int(cut[number, t, 0])
        assert step not in counted and labels[number, t, 0] == target[step]
        assert window_of(step, LENGTH, SCORED) == number * SCORED
        counted[step] = t
    assert set(counted) == set(range(steps)) - {0, 1, 5, 17}


def test_windows_of_a_training_overlap():
    inputs = np.stack([np.arange(20)] * 2, axis=1).astype("float32")
    cut, labels = windows(inputs, inputs[:, 0], LENGTH, SCORED, 1)
    assert cut[:, 0, 0].tolist() == list(range(16))
    assert (labels[1:, : LENGTH - SCORED] == 0).all() and labels[0, :, 1].all()


def test_without_a_known_target_there_is_nothing_to_learn():
    with pytest.raises(ValueError, match="must contain a step with a known target. Received: none"):
        windows(np.zeros((9, 2), "float32"), np.full(9, np.nan, "float32"), LENGTH, SCORED, 1)


# In use


@pytest.fixture(scope="module")
def simulator():
    config = SeriesConfig.preset(
        "tiny",
        num_layers=1,
        d_model=8,
        d_ff=12,
        num_heads=2,
        max_length=LENGTH,
        scored=SCORED,
        inputs=INPUTS,
        target="flow",
        input_mean=(1.0, 2.0),
        input_scale=(3.0, 4.0),
    )
    return SeriesSimulator(randomise(SeriesRegressor(config)))


def series(steps=25):
    return normal(steps, 2)


def test_every_output_is_computed_from_the_window_of_its_step(simulator):
    outputs = simulator(series())
    for step in range(len(series())):
        start = window_of(step, LENGTH, SCORED)
        alone = to_numpy(simulator.model(series()[None, start : step + 1]))[0, -1]
        assert outputs[step] == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("sizes", [[25], [1] * 25, [7, 1, 9, 8], [3, 22]])
def test_a_growing_series_has_the_outputs_of_the_whole_series(simulator, sizes):
    windowed, pieces = simulator.codec.windowed(simulator.run, batch_size=2), []
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        pieces.append(windowed.extend(series()[end - size : end]))
    np.testing.assert_allclose(np.concatenate(pieces), simulator(series()), rtol=0, atol=1e-6)


def test_steps_before_the_window_are_forgotten():
    windowed = Windowed(lambda cut: np.zeros(cut.shape[:2]), 2, LENGTH, SCORED)
    for _ in range(100):
        assert windowed.extend(series(5)).shape == (5,)
        assert len(windowed._rows) < LENGTH
    assert windowed.extend(series(0)).shape == (0,)


@pytest.mark.parametrize("wrong", [np.zeros(5), np.zeros((5, 3)), np.full((5, 2), np.nan)])
def test_wrong_series_are_reported_in_one_line(simulator, wrong):
    with pytest.raises(
        ValueError, match=r"`series` must be finite numbers \[steps, 2\]: rain, war"
    ):
        simulator(wrong)


def texts(header=None, columns=("rain", "warmth")):
    rows = [{"rain": a, "warmth": b, "date": "2001-01-01"} for a, b in series()]
    lines = [",".join(str(row[name]) for name in columns) for row in rows]
    return ([header] if header else []) + lines


def answers(simulator, lines, sizes=None):
    stream, out, begin = simulator.lines(), [], 0
    for size in sizes or [len(lines)]:
        part = lines[begin : begin + size]
        out += stream(range(begin + 1, begin + size + 1), part, 64)
        begin += size
    return [answer.text for (answer,) in out]


def test_lines_are_answered_one_by_one(simulator):
    expected = [f"{value:.6g}" for value in simulator(series())]
    assert answers(simulator, texts()) == expected
    close = [float(text) for text in answers(simulator, texts(), [1, 5, 19])]
    np.testing.assert_allclose(close, list(map(float, expected)), rtol=1e-4, atol=1e-5)
    header = "date,warmth,rain"
    named = texts(header, ("date", "warmth", "rain"))
    assert answers(simulator, named) == ["flow", *expected]
    assert answers(simulator, texts("rain,warmth")) == ["flow", *expected]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["1,2", "1"],
            "line 2: must have 2 columns with a comma between them, including rain, warmth",
        ),
        (["1,2", ""], "line 2: must have 2 columns"),
        (["1,2", "1,x"], "line 2: warmth must be a number. Received: 'x'."),
        (["1,2", "inf,1"], "line 2: rain must be a number. Received: 'inf'."),
        (["date,rain", "1,2"], "line 1: the header must have the columns .* Missing: warmth."),
        (["date,flow", "1,2"], "line 1: rain must be a number. Received: 'date'."),
        (["rain,warmth", "rain,warmth"], "line 2: rain must be a number. Received: 'rain'."),
    ],
)
def test_a_wrong_line_is_reported(simulator, lines, message):
    with pytest.raises(ValueError, match=message) as error:
        answers(simulator, lines)
    assert "\n" not in str(error.value)


def test_metadata_of_an_older_export_has_no_format(simulator):
    metadata, codec = simulator.codec.metadata(), type(simulator.codec)
    table = codec.from_metadata(metadata, None).table
    assert table == simulator.codec.table == simulator.model.config.input.table
    del metadata["table"]
    assert codec.from_metadata(metadata, None).table == TableFormat()


def test_an_evaluation_covers_the_steps_with_a_known_target(simulator):
    target = np.random.default_rng(3).gamma(2, size=25)
    target[[2, 3]] = np.nan
    known = np.isfinite(target)
    figures = TASKS["time_series"].evaluate(simulator, [list(series()), list(target)])
    assert figures["steps"] == 23
    assert figures["kge"] == pytest.approx(kling_gupta(target[known], simulator(series())[known]))
    lines = ["flow", *("" if np.isnan(value) else str(value) for value in target)]
    again = TASKS["time_series"].evaluate(simulator, [texts("rain,warmth"), lines])
    assert again["nse"] == pytest.approx(figures["nse"], abs=1e-4) and again["steps"] == 23
    with pytest.raises(ValueError, match="reference, line 1: must be a header, as in"):
        TASKS["time_series"].evaluate(simulator, [texts("rain,warmth"), ["1"] * 26])
    with pytest.raises(ValueError, match="at least one step with a known target"):
        TASKS["time_series"].evaluate(simulator, [list(series(3)), [np.nan] * 3])


def test_scales_are_those_of_water_and_snow_if_the_model_reads_them():
    given = np.abs(series(40)) * [9, -6] + [0, 4]  # rain, and temperatures around 0
    data = tf.data.Dataset.from_tensor_slices((given.astype("float32"), np.arange(40.0)))
    metadata = {"inputs": INPUTS, "snow": ("rain", "warmth")}
    plain, fields = (TASKS["time_series"].survey(data, known).fields for known in (None, metadata))
    np.testing.assert_allclose(plain["input_mean"], given.mean(axis=0), rtol=1e-4)
    assert fields["target_mean"] == plain["target_mean"] == 19.5
    water = SnowAccount(0, 1)(given[None].astype("float32")).numpy()[0]
    np.testing.assert_allclose(fields["input_mean"], water.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(fields["input_scale"], water.std(axis=0), rtol=1e-4)
    assert abs(fields["input_mean"][1] - plain["input_mean"][1]) > 1


def test_a_length_in_tokens_has_no_effect(simulator):
    with pytest.raises(ValueError, match="`max_length` has no effect on a model for time_series"):
        SeriesSimulator.with_files_of(None, simulator.model, 5)


def test_the_loss_takes_a_weight_for_each_series_or_for_each_step():
    rng = np.random.default_rng(0)
    error, counts = rng.normal(size=(3, 3)), np.array([[0, 1, 1], [1, 1, 1], [1, 0, 1]])
    labels = np.stack([np.zeros((3, 3)), counts], axis=-1).astype("float32")
    loss, weights = ScaledSquaredError(2.0), rng.uniform(size=(3, 3))
    for given, whole in ((weights[:, 0], weights[:, :1]), (weights, weights)):
        expected = np.mean((error / 2) ** 2 * counts * whole)
        got = loss(labels, error.astype("float32"), sample_weight=given.astype("float32"))
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    with pytest.raises(
        ValueError, match=r"`sample_weight` must be \[3\], a weight for each exampl"
    ):
        loss(labels, error.astype("float32"), sample_weight=np.ones(2))
