"""Checks of `benchmarks/encoders.py` that must pass before its results can be trusted."""

import functools
import json
import os

import pytest
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "encoders.py")
PYTHON = os.environ.get("KERAS_TRANSFORMER_PEERS_PYTHON")


@pytest.mark.parametrize("sizes", [(1, 16), (32, 128), (32, 0), (32, 0, 8)])
def test_outputs_are_compared_for_texts_with_padding(sizes):
    """Without padding, a peer that ignores its mask would pass the comparison."""
    from encoder_task import ENCODERS, SEP_ID, Case

    case, encoder = Case(*sizes), ENCODERS["minilm-l6"]
    rows, width = case.checked(encoder)
    first = case.groups(encoder)[0]
    assert len(rows) == len(first) and width == max(map(len, first))
    assert min(map(len, rows)) < width
    for row in rows:
        assert row.index(SEP_ID) == len(row) - 1 and 3 <= len(row) <= width


def test_a_peer_with_other_outputs_is_not_timed():
    from encoders import check_outputs
    from measurements import BenchmarkError

    rows = [[0.5, 0.5], [0.25, 0.75]]
    near = [[0.5, 0.50001], [0.25, 0.75]]
    far = [[0.5, 0.5], [0.26, 0.74]]
    errors = check_outputs({"ours": rows, "onnxruntime": near, "onnxruntime-int8": far})
    assert errors == pytest.approx({"ours": 0, "onnxruntime": 1e-5, "onnxruntime-int8": 0.01})
    for wrong in (far, [[float("nan"), 0.5], rows[1]]):
        with pytest.raises(BenchmarkError, match="outputs of ctranslate2 differ by .* of ours"):
            check_outputs({"ours": rows, "ctranslate2": wrong})


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(PYTHON is None, reason="needs KERAS_TRANSFORMER_PEERS_PYTHON")
@pytest.mark.parametrize("shape", ["smoke-labels", "smoke-vector"])
def test_all_peers_return_the_same_outputs(shape, tmp_path):
    """Otherwise `check_outputs` would stop the benchmark."""
    output = tmp_path / "figures.json"
    options = [f"--shape={shape}", "--cases=1x16,3x128", "--mixed=8", "--repeats=2"]
    peers = "ours,ours-litert,ours-litert-int8,ours-onnx,ours-onnx-int8,"
    peers += "onnxruntime,onnxruntime-int8,ctranslate2"
    done = benchmark(*options, "--seconds=0", "--peers", peers, "--json", output)
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert len(report["commands"]) == 10
    for row in report["encoders"]:
        assert row["error"] < (0.1 if "int8" in row["peer"] else 1e-4) and row["bytes"] > 1e3
    assert {row["case"] for row in report["encoders"]} == {
        "1 x 16", "3 x 128", "8 mixed, padded", "8 mixed, sorted by 8"
    }  # fmt: skip
