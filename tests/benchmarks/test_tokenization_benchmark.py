"""The comparison of tokenizers with the package `tokenizers`."""

import json
import os
import subprocess
import sys

import pytest
from support import run_benchmark

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
LINES = ["A dog runs.", "Zwei Männer, die lachen!"] * 40


@pytest.mark.slow
@pytest.mark.long
def test_no_difference_is_unexplained(tmp_path):
    if subprocess.run([PYTHON, "-c", "import tokenizers"], capture_output=True).returncode:
        pytest.skip("tokenizers is missing: see KERAS_TRANSFORMER_TRANSFORMERS")
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for language in ("en", "de"):
        (folder / f"train.{language}").write_text("\n".join(LINES))
    done = run_benchmark(
        "tokenization.py", "--data", str(tmp_path), "--texts", "300", "--pieces", "1200",
        "--trained-on", "2000", "--repeats", "1", "--python", PYTHON, "--json", tmp_path / "f.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    kinds = json.loads((tmp_path / "f.json").read_text())["kinds"]
    assert [row["kind"] for row in kinds][:2] == ["wordpiece-cased", "wordpiece-uncased"]
    for row in kinds:
        assert row["texts"] == 300 and row["sentencepiece"] == 0
        assert not row["reasons"].get("unexplained"), row
        assert all(speed > 0 for speeds in row["speeds"].values() for speed in speeds.values())
