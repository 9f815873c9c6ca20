"""The benchmark of first answers measures a process and names the modules that it imports."""

import click
import pytest
from pipelines import LINES, embedder

from keras_transformer.export import export_onnx


def test_a_process_is_measured(tmp_path):
    from first_answer import first_answer

    pytest.importorskip("onnxruntime")
    export_onnx(embedder(), tmp_path / "x.onnx", LINES)
    for how in ("command", "Python"):
        first = first_answer(how, tmp_path / "x.onnx", LINES[0])
        assert 0.1 < first.processor_seconds < first.seconds * 8
        assert 40 < first.megabytes < 300
        assert "numpy" in first.modules and "tensorflow" not in first.modules


def test_a_missing_model_is_an_error(tmp_path):
    from first_answer import first_answer

    with pytest.raises(click.ClickException, match="does not exist"):
        first_answer("Python", tmp_path / "missing.onnx", LINES[0])


def test_a_command_runs_before_the_process(tmp_path):
    from first_answer import first_answer

    before = f"touch {tmp_path / 'ran'}; false"
    with pytest.raises(click.ClickException, match=r"--before: .* failed"):
        first_answer("Python", tmp_path / "missing.onnx", LINES[0], before)
    assert (tmp_path / "ran").exists()
