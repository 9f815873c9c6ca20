"""Checks of `benchmarks/decoding.py` that must pass before its results can be trusted."""

import dataclasses
import functools
import json
import os

import numpy as np
import pytest
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "decoding.py")


def check_report(report):
    """Checks a report of greedy search: the command, our model and the limits."""
    assert set(report) == {"machine", "settings", "skipped", "commands", "decoding", "limits"}
    first = "export saved-model FOLDER/run FOLDER/saved-model_none --sentences "
    assert report["commands"][0].startswith(first)
    row = report["decoding"][0]
    assert {name: row[name] for name in ("size", "search", "batch", "length", "peer")} == {
        "size": "smoke", "search": "greedy", "batch": 3, "length": 7, "peer": "ours",
    }  # fmt: skip
    assert len(row["seconds"]["all"]) == 2
    assert row["seconds_per_token"] == row["seconds"]["median"] / 21
    assert row["agreement"] == 1.0
    (limit,) = report["limits"]
    times = (
        limit["flops"] / limit["flops_per_second"]["median"],
        limit["bytes"] / limit["bytes_per_second"]["median"],
    )
    assert limit["seconds"] == max(times)


@pytest.mark.parametrize(("sizes", "searches"), [([1], {"--greedy"}), ([1, 4], {"--beam"})])
def test_exports_hold_the_searches_that_are_timed(sizes, searches, tmp_path):
    """A run may have a search of its own, which an export uses if no option names another."""
    from decoding_files import commands
    from decoding_task import MODELS

    kinds = [("saved-model", "none"), ("litert", "int8"), ("ctranslate2", "none")]
    *ours, theirs = commands(MODELS["smoke"], tmp_path, kinds, sizes, [1])
    of_onnx = commands(MODELS["smoke"], tmp_path, [("onnx", "none")], sizes, [1])
    found = [line[line.index("--beam") + 1] if "--beam" in line else "1" for line in of_onnx]
    assert found == [str(size) for size in sizes]
    assert len({line[3] for line in of_onnx}) == len(sizes)
    for line in ours:
        assert {"--greedy", "--beam"} & {*line} == searches
        # By default, a beam ends 50 tokens after the source.
        assert ("--extra-length" in line) == (line[1] == "saved-model" and 4 in sizes)
    assert not {"--greedy", "--beam"} & {*theirs}


SSRU = "ours-ssru,ours-ssru-xla,ours-ssru-litert,ours-ssru-litert-int8,ours-ssru-onnx"
OURS = "ours,ours-xla,ours-litert,ours-litert-int8,ours-onnx,ours-onnx-int8"
THEIRS = "ctranslate2,ctranslate2-int8"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("peers", "searches", "cores"),
    [
        ("ours,ctranslate2", "greedy", 1),
        pytest.param(f"{OURS},{SSRU},{THEIRS}", "greedy", 1, marks=pytest.mark.long),
        pytest.param(
            f"ours-litert,ours-onnx,ours-ssru-litert,{THEIRS}", "beam", 2, marks=pytest.mark.long
        ),
    ],
)
def test_all_our_variants_return_the_same_tokens(peers, searches, cores, tmp_path):
    """Otherwise `compare_tokens` would stop the benchmark."""
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("ctranslate2")
    if cores > (os.cpu_count() or 1):
        pytest.skip(f"needs {cores} processors")
    output = tmp_path / "figures.json"
    done = benchmark(
        "--size=smoke", f"--peers={peers}", f"--searches={searches}", "--batches=3", "--lengths=7",
        f"--cores={cores}", "--repeats=2", "--seconds=0", "--json", output,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    rows = report["decoding"]
    if searches == "greedy":
        check_report(report)
    assert "ours" in done.stdout
    for search in searches.split(","):
        of_search = [row for row in rows if row["search"].startswith(search)]
        assert [row["peer"] for row in of_search] == peers.split(",")
        best = {row["best_peer"] for row in of_search}
        assert len(best) == 1 and best < set(THEIRS.split(","))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_model_stops_at_its_length_and_does_not_repeat_itself(beam_size):
    import tensorflow as tf
    from decoding_task import MODELS, Case, build, vocabulary, without_end, words
    from searching import by_beam

    from keras_transformer.tokenizers import SentencePieceTokenizer

    # Narrower models return fewer distinct outputs for so few sentences.
    model = dataclasses.replace(MODELS["tiny"], vocab_size=1000, length=11, seed=7)
    case = Case(beam_size=beam_size, batch_size=5, length=11)
    transformer = build(model)
    sources = case.sources(model)
    assert sources.shape == (5, 24) and (sources[:, -1] == 3).all() and (sources[:, :-1] > 3).all()
    decode = tf.function(lambda: by_beam(transformer, sources, beam_size, n_best=beam_size))
    tokens = decode()[0].numpy().reshape(-1, model.max_length)
    rows = without_end(tokens)
    assert {len(row) for row in rows} == {10} and np.min(rows) > 3
    # The best hypothesis of each sentence.
    assert len({tuple(row) for row in rows[::beam_size]}) == 5
    assert len({tuple(row) for row in rows[:beam_size]}) == beam_size
    assert np.mean([len(set(row)) for row in rows]) > 3
    tokenizer = SentencePieceTokenizer(vocabulary(model))
    assert tokenizer.encode([words(row) for row in sources]).to_list() == sources.tolist()


@pytest.mark.parametrize("decoder", ["self_attention", "ssru"])
def test_a_step_reads_the_weights_that_are_counted(decoder):
    from decoding_task import MODELS, build

    model = dataclasses.replace(MODELS["smoke"], decoder=decoder)
    read = 0
    for weight in build(model).weights:
        made_once = "cross_attention/key" in weight.path or "cross_attention/value" in weight.path
        in_decoder = weight.path.startswith("decoder/") and weight.path.endswith("kernel")
        if (in_decoder and not made_once) or weight.path == "embedding/table":
            read += 4 * int(np.prod(weight.shape))
    assert model.step_bytes == read


@pytest.mark.parametrize("decoder", ["self_attention", "ssru"])
def test_operations_are_those_of_the_matrix_products(decoder):
    """Counts token by token: S = 11, T = 7, D = 24, F = 17, V = 29; two blocks, a beam of 4."""
    from decoding_task import Case, Model

    model = Model("other", 29, d_model=24, num_layers=2, num_heads=3, d_ff=17, decoder=decoder)
    case = Case(beam_size=4, batch_size=5, length=7, source_length=11)
    counted = 0
    for _source_token in range(11):
        for _block in range(2):
            counted += 4 * 24 * 24 + 2 * 24 * 11 + 2 * 24 * 17  # encoder
            counted += 2 * 24 * 24  # keys and values of the cross-attention
    for position in range(7):
        for _hypothesis in range(4 if position else 1):
            for _block in range(2):
                if decoder == "ssru":
                    counted += 2 * 24 * 24
                else:
                    counted += 4 * 24 * 24 + 2 * 24 * (position + 1)  # self-attention
                counted += 2 * 24 * 24 + 2 * 24 * 11  # cross-attention
                counted += 2 * 24 * 17
            counted += 24 * 29
    assert case.flops(model) == 2 * 5 * counted


def test_tokens_must_agree_in_float32():
    from decoding import check_lengths, compare_tokens
    from measurements import BenchmarkError

    ours, near = [[5, 6], [7, 8]], [[5, 6], [7, 9]]
    agreement = compare_tokens({"ours": ours, "ctranslate2": ours, "ctranslate2-int8": near})
    assert agreement == {"ours": 1.0, "ctranslate2": 1.0, "ctranslate2-int8": 0.75}
    with pytest.raises(BenchmarkError, match=r"75\.0% of the tokens of marian are equal to tho"):
        compare_tokens({"ours": ours, "marian": near})
    check_lengths({"ours": ours, "marian": near}, 3)
    with pytest.raises(BenchmarkError, match="marian generated 1 tokens and the end, not 3 in all"):
        check_lengths({"ours": ours, "marian": [[5, 6], [7]]}, 3)
