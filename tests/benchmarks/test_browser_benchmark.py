"""Checks of `benchmarks/browser.py` that must pass before its results can be trusted."""

import json

import pytest
from browsers import missing as skip
from pipelines import translator
from support import run_benchmark

from keras_transformer.export import export_litert


def test_the_table_has_the_medians_and_the_equal_translations():
    from browser import share, table

    row = {
        "file": "x.onnx", "bytes": 1_234_000, "same": share(["a", "b"], ["a", "c"]),
        "chromium": {"median": 0.0123}, "python": {"median": 0.0046},
    }  # fmt: skip
    assert table([row]).splitlines()[2] == "| `x.onnx` | 1.23 | 12.3 | 4.6 | 50.0% |"


def test_engines_run_in_turn_and_each_repeat_begins_with_another_one():
    from browser import interleaved

    calls = []

    class Engine:
        def __init__(self, name):
            self.name = name

        def run(self, steps):
            calls.append((self.name, steps))
            return {"page_seconds": 1.0}

    seconds = interleaved({name: Engine(name) for name in "abc"}, 3)
    assert calls == [(name, 1) for name in "abcbcacab"]
    assert {name: len(times) for name, times in seconds.items()} == dict.fromkeys("abc", 3)


@pytest.mark.slow
@pytest.mark.long
def test_a_file_is_translated_alike_in_both_places(tmp_path):
    from student_parts.browser import missing

    if lacking := missing():
        skip(f"the page is not tested: {lacking} is missing")
    sentences = ["the dog", "the hills"]
    path = tmp_path / "x.tflite"
    export_litert(translator(), path, sentences)
    (tmp_path / "in.txt").write_text("\n".join(sentences) + "\n", "utf-8")
    done = run_benchmark(
        "browser.py", path, "--source", tmp_path / "in.txt", "--repeats=2",
        "--json", tmp_path / "out.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "out.json").read_text("utf-8"))["rows"]
    assert row["same"] == 1.0 and row["file"] == "x.tflite"
    assert len(row["chromium"]["all"]) == 2 and row["chromium"]["median"] > 0
