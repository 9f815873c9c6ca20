"""Checks of `benchmarks/speech.py` that must pass before its results can be trusted."""

import functools
import json
import os

import numpy as np
import pytest
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "speech.py")
PYTHON = os.environ.get("KERAS_TRANSFORMER_PEERS_PYTHON")


def test_the_vocabulary_has_whispers_ids():
    """The numbers are those of the published checkpoints, which whisper.cpp computes itself."""
    from speech_task import SHAPES

    speech = SHAPES["whisper-tiny"]
    assert speech.vocab_size == 51_865
    ids = {
        "<|endoftext|>": 50_257, "<|startoftranscript|>": 50_258, "<|en|>": 50_259,
        "<|translate|>": 50_358, "<|transcribe|>": 50_359, "<|nospeech|>": 50_362,
        "<|notimestamps|>": 50_363, "<|0.00|>": 50_364, "<|30.00|>": 51_864,
    }  # fmt: skip
    assert {piece: speech.id_of(piece) for piece in ids} == ids
    samples = speech.samples()
    assert samples.shape == (480_000,) and 0.1 < np.abs(samples).max() <= 1


def test_the_operations_are_those_of_a_loop_over_all_products():
    from speech_task import SHAPES

    speech = SHAPES["smoke"]
    d, f, source = speech.d_model, 4 * speech.d_model, 1500
    products = [(2 * source, 3 * 80, d), (source, 3 * d, d)]  # rows, inner, columns
    products += [(source, d, d)] * 4 + [(source, d, source), (source, source, d)]
    products += [(source, d, f), (source, f, d), (source, d, d), (source, d, d)]
    flops = speech.flops()
    assert flops["encoder"] == 2 * sum(a * b * c for a, b, c in products)
    steps = 3 + speech.tokens
    products = [(1, d, d)] * 6 + [(1, d, source), (1, source, d), (1, d, f), (1, f, d)]
    whole = steps * sum(a * b * c for a, b, c in products) + speech.tokens * d * speech.vocab_size
    assert flops["decoder"] == 2 * whole


def test_numbers_in_blocks_are_rounded_as_in_whisper_cpp():
    """Blocks of 34 bytes: the scale in float16, and 32 integers of 8 bits."""
    from speech_ggml import rounded

    values = np.random.default_rng(0).normal(size=(3, 64)).astype("float32")
    values[1, 32:] = 0
    blocks = np.frombuffer(rounded(values), np.uint8).reshape(6, 34)
    scales = blocks[:, :2].copy().view(np.float16).astype("float32")
    whole = blocks[:, 2:].copy().view(np.int8)
    assert np.abs(whole).max() == 127 and not scales[3].any() and not whole[3].any()
    error = np.abs(scales * whole - values.reshape(6, 32))
    # Half a unit; and the scale itself is rounded to 11 bits.
    assert (error <= scales * (0.5 + 127 * 2**-11)).all()


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([[1, 2, 3]], r"ours emitted outputs of \[3\] tokens instead of \[4\]"),
        ([[1, 2, 3, 4], [1, 2, 3, 4]], r"outputs of \[4, 4\] tokens"),
        ([[7, 7, 7, 7]], "ours emitted the same token 4 times"),
    ],
)
def test_a_peer_with_other_outputs_is_not_timed(tokens, message):
    from measurements import BenchmarkError
    from speech import check_outputs

    check_outputs({"other": [[1, 2, 3, 4]]}, 4)
    with pytest.raises(BenchmarkError, match=message):
        check_outputs({"other": [[1, 2, 3, 4]], "ours": tokens}, 4)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "peers",
    [
        "ours,ours-litert,ours-onnx",
        pytest.param(
            "ours-litert,faster-whisper,whisper-cpp-float16,transformers",
            marks=pytest.mark.skipif(PYTHON is None, reason="needs --peers-python"),
        ),
    ],
)
def test_all_peers_emit_the_same_tokens(peers, tmp_path):
    """Otherwise `compare_tokens` would stop the benchmark; of float16, enough are equal."""
    pytest.importorskip("ai_edge_litert")
    output = tmp_path / "figures.json"
    options = [f"--peers={peers}", "--cores=1", "--repeats=2", "--json", output]
    done = benchmark("--shape=smoke", *options)
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["speech"]
    assert [row["peer"] for row in rows] == peers.split(",")
    for row in rows:
        assert row["bytes"] > 1e6 and row["peak_bytes"] > 1e6 and len(row["seconds"]["all"]) == 2
