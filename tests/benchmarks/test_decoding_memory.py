"""Checks of `benchmarks/decoding_memory.py`."""

import functools
import json

import pytest
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "decoding_memory.py")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_file_is_measured(tmp_path):
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("ctranslate2")
    output = tmp_path / "results.json"
    done = benchmark(
        *("--shape=smoke-opus-mt", "--peers=ours-litert-int8,ctranslate2-int8", "--batches=3"),
        *("--processes=2", "--calls=2", "--folder", tmp_path / "files", "--json", output),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    rows = [(row["peer"], row["signatures"], row["search"]) for row in report["memory"]]
    assert rows == [
        (*peer, search)
        for search in ("greedy", "beam 4")
        for peer in (
            ("ours-litert-int8", "all"), ("ours-litert-int8", 1), ("ctranslate2-int8", "all")
        )
    ]  # fmt: skip
    assert all(min(row["peak_bytes"]) > 1e7 for row in report["memory"])
    all_, greedy, _, _, beam, _ = (row["bytes"] for row in report["memory"])
    assert max(greedy, beam) < all_
    assert len(report["commands"]) == 5 and "| LiteRT, int8, one signature |" in done.stdout
