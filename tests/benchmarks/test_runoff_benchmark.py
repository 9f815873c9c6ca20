"""The runoff benchmark: what it trains with never depends on what it is evaluated on."""

import csv
import datetime
import functools
import json

import numpy as np
import pytest

FIRST, LAST = datetime.date(1999, 9, 1), datetime.date(2009, 6, 29)
NAMES = ("precipitation_mm", "temperature_c", "potential_evapotranspiration_mm", "discharge_mm")
DATES = [FIRST + datetime.timedelta(day) for day in range((LAST - FIRST).days + 1)]
CALIBRATION_ENDS = datetime.date(2005, 8, 31)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Makes calibration and generated weather small."""
    import runoff_cases
    from conceptual import calibrate

    quick = functools.partial(calibrate, candidates=3, generations=0)
    monkeypatch.setattr(runoff_cases, "calibrate", quick)
    monkeypatch.setattr(runoff_cases, "GENERATED_YEARS", 3)


def series():
    rng = np.random.default_rng(0)
    season = np.sin(np.arange(len(DATES)) / 58)
    columns = rng.gamma(0.4, 7, len(DATES)), 8 * season + 2, 2 + season, rng.gamma(2, 1, len(DATES))
    return np.stack(columns, axis=1)


@pytest.fixture
def river(tmp_path, monkeypatch):
    """Returns a function that writes the river to a folder, with changed rows where it is told."""
    monkeypatch.setenv("KERAS_TRANSFORMER_DATA", str(tmp_path))
    (tmp_path / "runoff").mkdir()

    def write(change=None, columns=slice(None)):
        values = series()
        if change is not None:
            values[[change(date) for date in DATES], columns] += 1.5
        with (tmp_path / "runoff" / "durance_embrun_daily.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["date", *NAMES])
            writer.writerows([date, *row] for date, row in zip(DATES, values, strict=True))

    return write


def outcome(folder, year):
    """Returns what a case trains with: the parameters, the generated series and the data."""
    from runoff_cases import Case

    folder.mkdir()
    case = Case(folder, year, [])
    parameters, weather = case.calibrated
    assert case.generated[0] == f"data.file={folder / f'generated{case.suffix}.csv'}"
    return (
        {name: value.tolist() for name, value in parameters.items()},
        weather.tolist(),
        (folder / f"generated{case.suffix}.csv").read_text(),
    )


@pytest.mark.slow
def test_the_test_period_does_not_influence_the_calibration(river, tmp_path):
    river()
    first = outcome(tmp_path / "first", None)
    river(lambda date: date > CALIBRATION_ENDS)
    assert outcome(tmp_path / "second", None) == first
    river(lambda date: date == CALIBRATION_ENDS)
    assert outcome(tmp_path / "third", None) != first


@pytest.mark.long
@pytest.mark.slow
def test_the_discharge_of_a_year_left_out_does_not_influence_anything(river, tmp_path):
    from runoff_cases import LEFT_OUT, Case

    def in_2002(date):
        return datetime.date(2002, 9, 1) <= date <= datetime.date(2003, 8, 31)

    river()
    first = outcome(tmp_path / "first", 2002)
    river(in_2002, 3)
    assert outcome(tmp_path / "second", 2002) == first
    files = [
        (tmp_path / name / "river-without-2002.csv").read_text() for name in ("first", "second")
    ]
    assert files[0] == files[1]
    rows = list(csv.DictReader(files[0].splitlines()))
    empty = [not row["discharge_mm"] for row in rows]
    assert empty == [in_2002(date) for date in DATES]
    expected = series()[empty, 3] + 1.5
    case = Case(tmp_path / "second", 2002, [])
    np.testing.assert_allclose(case.observed(LEFT_OUT), expected)
    assert case.conceptual(LEFT_OUT).shape == (365,)


def test_other_inputs_are_reported_in_one_line(river, tmp_path):
    from runoff_cases import Case

    river()
    inputs = ", ".join(f'"{name}"' for name in reversed(NAMES[:3]))
    message = (
        "`data.inputs` must be precipitation_mm, .* Received: potential_.*, temperature_c, pre"
    )
    with pytest.raises(ValueError, match=message) as error:
        Case(tmp_path, None, [f"data.inputs=[{inputs}]"])
    assert "\n" not in str(error.value)


def test_generated_weather_consists_of_the_given_years_changed():
    from conceptual_series import resampled_weather

    years = [np.full((365, 3), 5.0), np.full((366, 3), 50.0)]
    made = resampled_weather(years, 40, np.random.default_rng(0)).reshape(40, 365, 3)
    hot = made[..., 1].mean(axis=1) > 30
    assert 5 < hot.sum() < 35 and made.min() >= 0
    assert 0.1 < np.log(made[~hot, :, 0] / 5).std() < 0.6
    assert 0.8 < (made[~hot, :, 1] - 5).std() < 2.5


def test_a_generated_series_is_the_simulation(tmp_path):
    from conceptual import BOUNDS, simulate
    from conceptual_series import FIRST as BEGIN
    from conceptual_series import write_simulated

    weather = series()[: 3 * 365, :3]
    sets = {name: np.array([(low + high) / 2]) for name, (low, high) in BOUNDS.items()}
    train, last = write_simulated(tmp_path / "made.csv", NAMES, weather, sets, weather)
    rows = list(csv.DictReader((tmp_path / "made.csv").open()))
    assert [row["discharge_mm"] == "" for row in rows] == [number < 365 for number in range(1095)]
    flow = [float(row["discharge_mm"]) for row in rows[365:]]
    np.testing.assert_allclose(flow, simulate(weather, sets)[0, 365:], atol=1e-6)
    given = [[float(row[name]) for name in NAMES[:3]] for row in rows]
    np.testing.assert_allclose(given, weather, atol=1e-4)
    day = datetime.timedelta(1)
    assert train == (BEGIN + 365 * day, BEGIN + 729 * day)
    assert last == (BEGIN + 730 * day, BEGIN + 1094 * day)


TINY = (
    "training.updates=2", "training.validate_every=2", "training.checkpoint_every=2",
    "schedule.warmup_steps=1", "data.window=40", "data.scored=30", "data.stride=30",
    "model.d_model=3",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_settings_are_chosen_without_the_test_period(river, tmp_path, monkeypatch):
    import runoff
    import runoff_cases
    from click.testing import CliRunner

    from keras_transformer.training.settings.toml import load_settings

    for module in (runoff, runoff_cases):
        monkeypatch.setattr(module, "YEARS", (2003, 2004))
    reports = []
    for name, change in (("first", None), ("second", lambda date: date > CALIBRATION_ENDS)):
        river(change)
        words = ["--output", str(tmp_path / name), "--encoders=lstm", "--seeds=1", "--pretrain"]
        words += [word for setting in TINY for word in ("--set", setting)]
        done = CliRunner().invoke(runoff.main, [*words, "--choose"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        reports.append(json.loads((tmp_path / name / "runoff.json").read_text()))
    assert reports[0] == reports[1]
    assert {model: list(splits) for model, splits in reports[0].items()} == {
        "CemaNeige-GR4J": ["left out"],
        "lstm": ["left out"],
    }
    for year in (2003, 2004):
        settings = load_settings(tmp_path / f"first/lstm-1-without-{year}/config.toml")
        assert settings.model.start_from.endswith(f"first/lstm-1-pretrained-without-{year}")


def test_metrics_of_years_left_out_are_those_of_one_series():
    from runoff import joined, summaries

    observed = np.array([1.0, 4.0, 2.0, 8.0])
    halves = [{"left out": observed[:2] * 1.1}, {"left out": observed[2:] * 0.9}]
    made = summaries({1: joined(halves)}, {"left out": observed})["left out"]
    whole = np.concatenate([half["left out"] for half in halves])
    error = np.sum((whole - observed) ** 2) / np.sum((observed - observed.mean()) ** 2)
    assert made["median"]["nse"] == pytest.approx(1 - error)
