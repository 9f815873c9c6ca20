"""Checks of `benchmarks/ancestors.py` that must pass before its results can be trusted."""

import json

import numpy as np
import pytest
from marks import slow

EQUAL = ["vocabulary.size=4000", "training.updates=6000"]
NAMES = {"train": "train", "val": "validation", "test_2016_flickr": "test"}


@pytest.fixture
def captions(tmp_path, monkeypatch):
    """A folder with a small corpus under the names of Multi30K's."""
    monkeypatch.setenv("KERAS_TRANSFORMER_DATA", str(tmp_path))
    (tmp_path / "multi30k").mkdir()
    rng = np.random.default_rng(0)
    for name in NAMES:
        words = ["".join(rng.permutation(list("abcdefgh"))[:4]) for _ in range(50)]
        rows = [rng.permutation(words)[: rng.integers(2, 8)] for _ in range(40)]
        for side, order in (("en", 1), ("de", -1)):
            text = "".join(" ".join(row[::order]) + "\n" for row in rows)
            (tmp_path / "multi30k" / f"{name}.lc.norm.tok.{side}").write_text(text)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [
        slow("transformer"),
        slow("ssru"),
        slow("gru"),
        slow("lstm"),
        "bahdanau",
        slow("convs2s"),
        "bytenet",
    ],
)
def test_a_system_has_as_many_parameters_as_the_transformer(system, captions):
    from ancestors import fitted, parameters, settings_of

    target = parameters(settings_of("transformer", EQUAL))
    width, count = fitted(system, target, EQUAL)
    assert width % 2 == 0 and abs(count / target - 1) < 0.02
    if system == "transformer":
        assert count == target


def test_a_number_of_parameters_that_no_width_has_is_refused(captions):
    from ancestors import fitted
    from measurements import BenchmarkError

    with pytest.raises(BenchmarkError, match="bahdanau has .* which differs from 1,000 by more"):
        fitted("bahdanau", 1000, EQUAL)


def test_systems_differ_in_their_models_alone(captions):
    from ancestors import EQUAL as ALL
    from ancestors import SYSTEMS, settings_of

    words = [word.format(updates=60, warmup=6, every=6) for word in ALL] + ["schedule.peak=0.001"]
    settings = {system: settings_of(system, words).model_dump() for system in SYSTEMS}
    for other in settings.values():
        del other["model"]
        assert other == next(iter(settings.values()))


def test_the_table():
    from ancestors import table

    runs = [{"test": 30.0, "tokens_per_second": 900.0}, {"test": 33.0, "tokens_per_second": 1100.0}]
    runs.append({"test": 33.0, "tokens_per_second": None})  # it was interrupted
    row = {"system": "convs2s", "width": 128, "parameters": 2_600_000, "runs": runs}
    lines = table([{**row, "milliseconds": 12.34, "megabytes": 9.876}]).split("\n")
    assert lines[2] == (
        "| convs2s | 128 | 2,600,000 | 30.00, 33.00, 33.00 | 32.00 | 1,000 | 12.3 | 9.88 |"
    )


@pytest.mark.long
@pytest.mark.slow
def test_finished_runs_are_kept(captions, tmp_path, monkeypatch):
    import ancestors
    from click.testing import CliRunner

    words = ["--folder", str(tmp_path / "runs"), "--systems=bahdanau", "--seeds=2", "--smoke"]
    reports = []
    for _ in range(2):
        done = CliRunner().invoke(ancestors.main, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        reports.append(json.loads((tmp_path / "runs" / "ancestors.json").read_text()))
        monkeypatch.setattr(ancestors, "run_command", None)  # nothing is exported again
    assert reports[0] == reports[1]
    (row,) = reports[0]["systems"]
    assert [run["seed"] for run in row["runs"]] == [1, 2] and len(row["grid"]) == 2
    assert row["megabytes"] > 0 and row["milliseconds"] > 0
    runs = sorted(path.name for path in (tmp_path / "runs" / "bahdanau").iterdir())
    chosen = f"peak-{row['peak']:g}-dropout-{row['dropout']:g}-seed"
    assert len(runs) == 3 and {f"{chosen}-1", f"{chosen}-2"} < {*runs}
