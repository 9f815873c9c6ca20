"""Checks of `benchmarks/decoding_memory.py`."""

import functools
import json
import pathlib

import numpy as np
import pytest
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "decoding_memory.py")


def row(peer, signatures="all", case=("greedy", 1), peaks=(150e6,), size=84e6):
    search, batch = case
    return {
        "peer": peer, "signatures": signatures, "search": search, "batch": batch,
        "bytes": size, "peak_bytes": list(peaks),
    }  # fmt: skip


def test_memory_is_compared_with_the_same_precision_and_case():
    from decoding_memory import table

    beam = "beam 4", 32
    rows = [
        row("ours", peaks=[1700e6]), row("ours-litert-int8", peaks=[300e6, 290e6, 200e6]),
        row("ours-litert-int8", 1, peaks=[180e6, 181e6], size=79e6),
        row("ours-litert-int8", 1, beam, [160e6]), row("ours-litert-int8", 2, beam, [170e6]),
        row("ctranslate2", peaks=[340e6]),
        row("ctranslate2-int8"), row("ctranslate2-int8", case=beam, peaks=[320e6]),
    ]  # fmt: skip
    assert table(rows).splitlines() == [
        "|  | greedy, 1 | beam 4, 32 | MB of file |",
        "| --- | --- | --- | --- |",
        "| SavedModel | 1,700 (5.00) |  | 84.0 |",
        "| LiteRT, int8 | 200 to 300 (1.93) |  | 84.0 |",
        "| LiteRT, int8, one signature | 180 (1.20) | 160 (0.50) | 79.0 to 84.0 |",
        "| LiteRT, int8, 2 signatures |  | 170 (0.53) | 84.0 |",
        "| CTranslate2, float32 | 340 |  | 84.0 |",
        "| CTranslate2, int8 | 150 | 320 | 84.0 |",
    ]


@pytest.mark.parametrize(("size", "name"), [(1, "greedy_3_24_48"), (4, "beam_4_3_24_48")])
def test_a_file_with_one_signature_is_written_once(size, name, tmp_path, monkeypatch):
    import decoding_memory
    import pretrained

    lines = []

    def write(line):
        lines.append(line)
        pathlib.Path(line[3]).write_bytes(b"123")
        return 2.0, 5e6

    monkeypatch.setattr(pretrained, "run_measured", write)
    shape, report = pretrained.SHAPES["smoke-opus-mt"], {"commands": []}
    case = decoding_memory.Case(size, 3, shape.tokens)
    for _ in range(2):
        place = decoding_memory.write_alone(
            report, shape, case, tmp_path, "ours-litert-int8", [24, 48]
        )
    assert place == tmp_path / name
    (line,) = lines
    assert line[:4] == ["export", "litert", f"{tmp_path}/run", f"{place}/litert_int8.tflite"]
    text, longest = " ".join(line), shape.model.max_length
    assert f"--batch-sizes 3 --lengths 24,48 --max-length {longest} --quantize int8" in text
    assert ("--greedy" in line) == (size == 1) and ("--beam-only" in line) == (size == 4)
    assert len(report["commands"]) == 1


def test_the_shortest_signature_that_fits_is_called_with_padded_sources():
    from decoding_peers.litert import _decoder
    from decoding_task import Case
    from pretrained import SHAPES

    class Engine:
        signatures = ("greedy_3x9", "greedy_3x64", "greedy_3x33", "greedy_32x25", "beam4_3x25")

        def run(self, name, source):
            return {"tokens": (name, source)}

    model = SHAPES["smoke-opus-mt"].model
    sources = Case(1, 3, 7).sources(model)
    name, given = _decoder(Engine(), model, Case(1, 3, 7), sources)()
    assert name == "greedy_3x33" and given.shape == (3, 33) and given.dtype == np.int32
    np.testing.assert_array_equal(given[:, :24], sources)
    assert not given[:, 24:].any()


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
