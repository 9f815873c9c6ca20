"""Checks of `benchmarks/encoders.py` that must pass before its results can be trusted."""

import functools
import json
import os
import types

import numpy as np
import pytest
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "encoders.py")
PYTHON = os.environ.get("KERAS_TRANSFORMER_PEERS_PYTHON")


def test_texts_have_the_lengths_of_their_case():
    from encoder_task import CLS_ID, ENCODERS, LONGEST_MIXED, PAD_ID, SEP_ID, Case, padded

    encoder = ENCODERS["minilm-l6"]
    (rows,) = Case(5, 16).groups(encoder)
    assert [len(row) for row in rows] == [16] * 5 and rows == Case(5, 16).groups(encoder)[0]
    assert len({tuple(row) for row in rows}) == 5, "and they differ"
    for row in rows:
        assert row[0] == CLS_ID and row[-1] == SEP_ID and not {PAD_ID, SEP_ID} & {*row[:-1]}
    (mixed,), groups = Case(32, 0).groups(encoder), Case(32, 0, 8).groups(encoder)
    assert [len(group) for group in groups] == [8] * 4
    assert sorted(mixed) == sorted(row for group in groups for row in group)
    lengths = [len(row) for group in groups for row in group]
    assert lengths == sorted(lengths) and 4 <= lengths[0] < 16 and lengths[-1] > 64
    assert lengths[-1] <= LONGEST_MIXED and np.median(lengths) < 32
    ids, mask = padded([[2, 7, 3], [2, 3]], 4)
    assert ids.tolist() == [[2, 7, 3, 0], [2, 3, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 0], [1, 1, 0, 0]]


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


def test_each_precision_has_its_own_rival():
    from encoder_report import add_peers, fastest_rival
    from encoder_task import ENCODERS, Case

    times = {"ours": [3.0], "ours-int8": [1.5], "a": [2.0], "b": [4.0], "a-int8": [1.0]}
    assert [fastest_rival(name, times) for name in times] == ["a", "a-int8", "a", "a", "a-int8"]
    assert fastest_rival("ours", {"ours": [1.0], "a-int8": [1.0]}) is None
    worker = types.SimpleNamespace(facts={"bytes": 5, "first_seconds": 2.0})
    runs = {
        name: [{"processor_seconds": 2 * value, "seconds": 9.0, "peak_bytes": 7}]
        for name, (value,) in times.items()
    }
    report, steps = {"encoders": []}, dict.fromkeys(times, (0, 2))
    workers, errors = dict.fromkeys(times, worker), dict.fromkeys(times, 0.0)
    add_peers(report, ENCODERS["bert-base"], Case(1, 16), workers, runs, steps, errors)
    rows = {row["peer"]: row for row in report["encoders"]}
    assert rows["ours"]["seconds"]["median"] == 3 and rows["ours"]["wall_seconds"]["all"] == [4.5]
    assert rows["ours"]["ratio"]["median"] == 1.5 and rows["ours-int8"]["rival"] == "a-int8"


def test_tables_have_the_form_of_the_documents():
    from markdown_table import table

    def row(peer, case, seconds, **more):
        facts = {"bytes": 2e6, "peak_bytes": 3e6, "first_seconds": 0.51, **more}
        return {"peer": peer, "case": case, "seconds": {"median": seconds}, **facts}

    rows = [
        row("ours-litert", "1 x 16", 0.0056), row("onnxruntime", "1 x 16", 0.0061),
        row("ours-litert-int8", "1 x 16", 0.0017), row("onnxruntime", "32 x 16", 1.127),
        row("ours-litert-mixed", "8 mixed", 0.0456, bytes=4e6, first_seconds=1.5),
    ]  # fmt: skip
    assert table(rows, lambda row: row["case"]).splitlines() == [
        "|  | 1 x 16 | 32 x 16 | 8 mixed | MB of file | MB of memory | first answer, s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| LiteRT, float32 | **5.60** |  | **45.6** | 2.0 to 4.0 | 3 | 0.5 to 1.5 |",
        "| ONNX Runtime, float32, fused | 6.10 | **1,127** |  | 2.0 | 3 | 0.5 |",
        "| LiteRT, int8 | **1.70** |  |  | 2.0 | 3 | 0.5 |",
    ]


def test_files_of_fixed_shapes_get_the_texts_that_fit():
    from encoder_files import GROUP, MIXED, MIXED_LENGTHS, MIXED_SIZES, commands, path_of
    from encoder_task import LONGEST_MIXED, Case
    from encoders import able, keys_of

    fixed, sort, pad = Case(1, 16), Case(32, 0, GROUP), Case(32, 0)
    assert keys_of("ours", [fixed, sort]) == ["ours"]
    assert keys_of("ours-litert", [fixed, sort]) == ["ours-litert", "ours-litert-mixed"]
    assert [able("ours-litert", case) for case in (fixed, sort, pad)] == [True, False, False]
    assert [able("ours-litert-mixed", case) for case in (fixed, sort, pad)] == [False, True, True]
    assert [able("onnxruntime", case) for case in (fixed, sort, pad)] == [True, True, True]
    assert max(MIXED_LENGTHS) == LONGEST_MIXED
    folder = path_of("folder", "run", "").parent
    kinds = [("saved-model", "none"), ("litert", "none"), (MIXED, "int8"), ("ctranslate2", "int8")]
    lines = commands(folder, kinds, [fixed, Case(32, 128)])
    (convert, _), (saved_model, _), (litert, _), (mixed, path), (other, _) = lines
    assert convert[:2] == ["convert", "hf"] and saved_model[:2] == ["export", "saved-model"]
    assert mixed[1:4:2] == ["litert", str(path)] and "int8" in mixed
    assert mixed[mixed.index("--batch-sizes") + 1] == ",".join(map(str, MIXED_SIZES))
    assert other[:2] == ["export", "ctranslate2"] and "--lengths" not in other and "int8" in other
    assert litert[-6:] == ["--batch-sizes", "1,32", "--lengths", "16,128", "--max-length", "128"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cases=1x17"], "'1x17' is not a list such as 1x16,32x128."),
        (["--peers=theirs"], "'theirs' is not one of ours, ours-litert"),
        (["--mixed=9"], "must be a multiple of 8."),
        (["--peers-python", "/no/python"], "/no/python: No such file or directory."),
    ],
)
def test_wrong_options_are_reported_in_one_line(arguments, message, monkeypatch):
    done = benchmark(*arguments)
    assert done.returncode and message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(PYTHON is None, reason="needs KERAS_TRANSFORMER_PEERS_PYTHON")
@pytest.mark.parametrize("shape", ["smoke-labels", "smoke-vector"])
def test_all_peers_return_the_same_outputs(shape, tmp_path):
    """Otherwise `check_outputs` would stop the benchmark."""
    output = tmp_path / "figures.json"
    options = [f"--shape={shape}", "--cases=1x16,3x128", "--mixed=8", "--repeats=2"]
    peers = "ours,ours-litert,ours-litert-int8,onnxruntime,onnxruntime-int8,ctranslate2"
    done = benchmark(*options, "--seconds=0", "--peers", peers, "--json", output)
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert len(report["commands"]) == 8
    for row in report["encoders"]:
        assert row["error"] < (0.1 if "int8" in row["peer"] else 1e-4) and row["bytes"] > 1e3
    assert {row["case"] for row in report["encoders"]} == {
        "1 x 16", "3 x 128", "8 mixed, padded", "8 mixed, sorted by 8"
    }  # fmt: skip
