"""Checks of `benchmarks/positions.py` that must pass before its results can be trusted."""

import json

import pytest
from small_runs import CONFIG, write_pairs
from support import run_benchmark


@pytest.mark.slow
@pytest.mark.long
def test_position_encodings_are_compared(tmp_path):
    for seed, split in enumerate(("train", "validation")):
        write_pairs(tmp_path, split, count=60, seed=seed)
    (tmp_path / "c.toml").write_text(CONFIG)
    output = tmp_path / "figures.json"
    done = run_benchmark(
        "positions.py", "--config", tmp_path / "c.toml", "--positions=learned,t5", "--updates=2",
        "--length=4", "--folder", tmp_path / "runs", "--json", output,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert report["settings"]["updates"] == 2
    learned, t5 = report["positions"]
    assert (learned["position"], t5["position"]) == ("learned", "t5")
    # A table of 4 x 4 positions; a table of 4 buckets and 2 heads in each of two self-attentions.
    assert learned["parameters"] - t5["parameters"] == 16 * 16 - 2 * 4 * 2
    assert (learned["untrained"], t5["untrained"]) == (16 - 4, 0)
    for row in (learned, t5):
        counts = [row[kind]["sentences"] for kind in ("trained", "longer")]
        assert counts == [learned[kind]["sentences"] for kind in ("trained", "longer")]
        assert all(counts) and sum(counts) <= 60
        assert row["trained"]["perplexity"] > 1 and row["longer"]["perplexity"] > 1
    assert "learned: 12 rows of its table" in done.stdout and "t5: " not in done.stdout
    assert "2 updates with sentences of up to 4 tokens" in done.stdout
    assert (tmp_path / "runs" / "t5" / "model.keras").exists()
