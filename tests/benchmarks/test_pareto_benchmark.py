"""Checks of `benchmarks/pareto.py` that must pass before its results can be trusted."""

import json
import math

import pytest
from small_runs import CONFIG, write_small_corpus
from support import run_benchmark


def rows():
    kinds = [("none", 8e6, 4.0, 40.0), ("int8", 2e6, 2.0, 39.5), ("int4", 1e6, 2.5, 38.0)]
    return [
        {"run": run, "quantize": kind, "bytes": factor * size, "milliseconds": factor * time,
         "bleu": bleu - loss, "chrf": 60.0, "same": 1.0}
        for run, factor, loss in (("large", 1, 0), ("small", 0.5, 1))
        for kind, size, time, bleu in kinds
    ]  # fmt: skip


def by_definition(rows, cost):
    """Rows that no other row dominates, compared pair by pair."""
    return [
        row
        for row in rows
        if not any(
            other[cost] <= row[cost] and other["bleu"] >= row["bleu"] and other is not row
            for other in rows
        )
    ]


@pytest.mark.parametrize("cost", ["bytes", "milliseconds"])
def test_the_front(cost):
    from pareto import front

    found = front(rows(), cost)
    assert found == sorted(by_definition(rows(), cost), key=lambda row: row[cost])
    assert 1 < len(found) < 6


def test_the_table_has_the_results_of_the_page():
    from pareto import table

    lines = table([row | {"page_milliseconds": 7.25, "page_same": 0.5} for row in rows()])
    assert lines.splitlines()[2].endswith("| 100.0% | 7.2 | 50.0% |")
    assert len({line.count("|") for line in lines.splitlines()}) == 1


@pytest.mark.long
@pytest.mark.slow
def test_the_page_prefers_greedy_search(tmp_path):
    (tmp_path / "run").mkdir()
    done = run_benchmark(
        "pareto.py", tmp_path / "run", "--folder", tmp_path, "--page=2", "--beam=4"
    )
    assert done.returncode == 1
    message = "add --beam-only to --export, or use --page without --beam.\n"
    assert done.stderr.endswith(message)


@pytest.mark.slow
@pytest.mark.long
def test_small_runs_are_exported_and_measured(tmp_path):
    from keras_transformer.training.settings.toml import load_settings
    from keras_transformer.training.training_run import train

    write_small_corpus(tmp_path)
    (tmp_path / "wide.toml").write_text(CONFIG.replace("d_model = 16", "d_model = 64"))
    for name in ("config", "wide"):
        train(load_settings(tmp_path / f"{name}.toml"), tmp_path / name)
    done = run_benchmark(
        "pareto.py", tmp_path / "config", tmp_path / "wide", "--folder", tmp_path / "out",
        "--quantize=none,int8", "--beam=2", "--export=--lengths 20",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "results.json").read_text())
    assert report["sentences"] == 7
    found = {(row["run"], row["quantize"]): row for row in report["rows"]}
    assert list(found) == [(run, kind) for run in ("config", "wide") for kind in ("none", "int8")]
    for (run, kind), row in found.items():
        assert row["bytes"] == (tmp_path / "out" / f"{run}-{kind}.tflite").stat().st_size
        assert row["milliseconds"] > 0 and math.isfinite(row["bleu"] + row["chrf"])
        assert row["same"] == 1 or kind == "int8"
    assert (tmp_path / "out" / "table.md").read_text() in done.stdout
    assert (tmp_path / "out" / "pareto.svg").exists()


@pytest.mark.slow
@pytest.mark.long
def test_the_page_translates_as_the_file_does_in_python(tmp_path):
    from student_parts.browser import missing

    from keras_transformer.training.settings.toml import load_settings
    from keras_transformer.training.training_run import train

    if missing():
        pytest.skip(f"the page needs {missing()}")
    write_small_corpus(tmp_path)
    train(load_settings(tmp_path / "config.toml"), tmp_path / "run")
    done = run_benchmark(
        "pareto.py", tmp_path / "run", "--folder", tmp_path / "out", "--quantize=none",
        "--page=5", "--export=--lengths 20",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    assert row["page_same"] == 1 and row["page_milliseconds"] > 0 and "texts" not in row
