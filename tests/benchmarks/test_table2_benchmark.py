"""Checks of `benchmarks/table2.py`: the paper's arithmetic, and what is counted for a run."""

import json
import statistics

import pytest
from small_runs import write_small_corpus
from support import run_benchmark

from keras_transformer.tasks import open_run
from keras_transformer.training import evaluate_split, load_settings, train


def test_the_estimate_reproduces_the_costs_of_the_paper():
    from table2 import PAPER, paper_estimate

    p100, day = 9.5e12, 24 * 3600
    base = paper_estimate(day / 2, 8, p100)  # 12 hours on 8 P100, section 5.2
    big = paper_estimate(3.5 * day, 8, p100)
    for name, cost in (("Transformer, base", base), ("Transformer, big", big)):
        assert float(f"{cost:.1e}") == PAPER[name][2] == PAPER[name][3]


def test_ensembles_cost_as_much_as_their_eight_models():
    from table2 import PAPER

    for name in ("GNMT + RL", "ConvS2S"):
        for cost, of_ensemble in zip(PAPER[name][2:], PAPER[f"{name}, ensemble"][2:], strict=True):
            assert of_ensemble == pytest.approx(8 * cost, rel=0.03)  # rounded to two digits


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """Returns the folder of a finished run with test results, and its settings."""
    monkeypatch.chdir(tmp_path)
    write_small_corpus(tmp_path)
    (tmp_path / "test.src").write_text("123\n")
    (tmp_path / "test.tgt").write_text("321\n")
    changes = ["data.test_source=test.src", "data.test_target=test.tgt"]
    settings = load_settings("config.toml", changes)
    train(settings, "run")
    evaluate_split("run")
    return tmp_path / "run"


@pytest.mark.slow
@pytest.mark.long
def test_multiplications_of_a_run_are_those_of_its_batches(finished):
    """The count equals the equations of the model, for the shapes of the batches."""
    from table2_run import Trained, _inputs, _session

    from keras_transformer.tasks.run import Run

    metadata = Trained(finished, batches=2).metadata
    config = open_run(finished).model.config
    d, f, v = config.d_model, config.encoder.block.d_ff, config.tokens.vocab_size

    def multiplications(batch):
        (rows, s), (_, t) = batch["source"].shape, batch["target"].shape
        encoder = s * (4 * d * d + 2 * s * d + 2 * d * f)
        decoder = t * (4 * d * d + 2 * t * d + 2 * d * f)
        cross = 2 * t * d * d + 2 * s * d * d + 2 * t * s * d
        return rows * (encoder + decoder + cross + t * d * v)

    session = _session(Run(finished), load_settings(finished / "config.toml"))
    expected = [multiplications(batch) for batch in _inputs(session, 2)]
    assert len(expected) == 2 and metadata["batch_multiplications"] == expected
    assert metadata["multiplications"] == statistics.mean(expected)
    assert (metadata["updates"], metadata["passes"]) == (11, 11)
    assert "bleu" in metadata["test"]


@pytest.mark.slow
@pytest.mark.long
def test_the_table_is_made(finished):
    output = finished.parent / "table2.json"
    done = run_benchmark(
        "table2.py", finished, "--cores=3", "--capacity=2", "--batches=1", "--json", output
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(output.read_text())["runs"]
    assert row["estimate"] == row["train_seconds"] * 3 * 2e9
    assert row["counted"] == 6 * 11 * row["multiplications"]
    assert row["utilization"] == row["counted"] / row["estimate"]
    assert "| Transformer, big | 28.4 | 41.8 | 2.3e19 | 2.3e19 |" in done.stdout
    assert "| `run` | " in done.stdout and " x 3 | 2 | " in done.stdout


@pytest.mark.slow
def test_a_folder_without_a_finished_run_is_refused(tmp_path):
    done = run_benchmark("table2.py", tmp_path, "--capacity=1")
    assert done.returncode == 1 and "is not a finished run: train it to the end." in done.stderr
