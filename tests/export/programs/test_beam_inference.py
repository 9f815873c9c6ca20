"""The program in `examples/beam`: a SavedModel in `RunInference`, run by Beam's DirectRunner."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = ROOT / "examples" / "beam" / "inference.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("apache_beam") is None,
        reason="apache-beam is missing: `pip install apache-beam` to test examples/beam",
    ),
]


def test_a_pipeline_returns_the_answers_of_the_model_for_lines_of_files(
    serving, translator, tmp_path
):
    directory, _ = serving
    lines = ["in 17 weeks", "in 3 days", "", "weeks", "in 17 weeks and 3 days", "Grüße aus Köln"]
    for number in range(2):
        (tmp_path / f"in-{number}.txt").write_text("\n".join(lines[number::2]) + "\n", "utf-8")
    command = [
        *(sys.executable, PROGRAM, "--model", directory / "1"),
        *("--input", tmp_path / "in-*.txt", "--output", tmp_path / "out" / "answers"),
        *("--batch-size", 4),
    ]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    files = sorted((tmp_path / "out").glob("answers-*"))
    answers = [line for file in files for line in file.read_text("utf-8").splitlines()]
    texts = translator(lines)
    assert sorted(answers) == sorted(map("\t".join, zip(lines, texts, strict=True)))
