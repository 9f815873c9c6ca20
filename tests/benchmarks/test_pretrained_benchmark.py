"""Checks of `benchmarks/pretrained.py` that must pass before its results can be trusted."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "pretrained.py")


def checkpoint(shape, folder):
    """Writes a checkpoint of a given shape and reads it as `convert` does."""
    from pretrained import SHAPES
    from pretrained_files import make

    from keras_transformer.pretrained.read import read_checkpoint

    shape = SHAPES[shape]
    order = {"folder": str(folder), "format": shape.format, "prompt": shape.prompt}
    make({"model": vars(shape.model), **order})
    path = folder / "checkpoint"
    path = path / "model.npz" if shape.format == "marian" else path
    return shape, read_checkpoint(path)


@pytest.mark.slow
def test_outputs_have_the_timed_length_and_differ(tmp_path, name="smoke-gpt2"):
    from decoding import check_lengths
    from decoding_task import Case, without_end
    from searching import by_greedy

    shape, read = checkpoint(name, tmp_path)
    config = read.model.config
    activations = {"opus-mt": "silu", "gpt2": "gelu_tanh"}
    stack = config.encoder or config.decoder
    assert stack.block.activation == activations.get(shape.format, "relu")
    kind = "ssru" if shape.format == "marian" else "self_attention"
    assert config.decoder.mixer.kind == kind
    sources = Case(1, 5, shape.tokens).sources(shape.model)
    tokens = tf.function(by_greedy)(read.model, sources, shape.model.max_length)[0]
    rows = without_end(tokens.numpy())
    check_lengths({"ours": rows}, shape.checked_length)
    assert [row[: shape.prompt] for row in rows] == sources[:, : shape.prompt].tolist()
    rows = [tuple(row[shape.prompt :]) for row in rows]
    assert len(set(rows)) > 1, "they depend on their sources"
    assert np.mean([len(set(row)) for row in rows]) > 2, "and are not one token again and again"
    lines = (tmp_path / "sentences.txt").read_text("utf-8").splitlines()
    encoded = read.tokenizers.source.encode(lines).to_list()
    assert max(map(len, encoded)) <= shape.model.max_length
    if not shape.prompt:
        assert encoded[0] == sources[0].tolist()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("shape", "peers"),
    [
        ("smoke-opus-mt", "ours-litert,ctranslate2"), ("smoke-student", "ours,ours-litert"),
        ("smoke-t5", "ours,ctranslate2"), ("smoke-gpt2", "ours,ours-litert,ctranslate2"),
        ("smoke-gpt2 --prompt=40", "ours,ours-litert,ctranslate2"),
    ],
)  # fmt: skip
def test_all_peers_return_the_same_tokens(shape, peers, tmp_path):
    """Otherwise `compare_tokens` would stop the benchmark."""
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("ctranslate2")
    output = tmp_path / "figures.json"
    options = [*f"--shape={shape}".split(), f"--peers={peers}"]
    options += ["--searches=greedy", "--batches=3"]
    done = benchmark(*options, "--repeats=2", "--seconds=0", "--json", output)
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert [row["peer"] for row in report["decoding"]] == peers.split(",")
    assert (
        len(report["commands"]) == 1 + len(peers.split(","))
        and "convert" in report["commands"][0]["command"]
    )
    for row in (*report["commands"], *report["decoding"]):
        assert row["bytes"] > 1e4 and row["peak_bytes"] > 1e6
