"""The programs in docs/onnx.md, exactly as on the page."""

import importlib.util

import pytest
from documents import blocks, run

from keras_transformer.export import OnnxOptions, export_onnx

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
PAGE = "docs/onnx.md"


def programs(needs):
    return [block for block in blocks(PAGE, "python") if block.needs == needs]


@pytest.mark.slow
def test_it_translates_as_the_model_does(translator, sentences, onnx_file, monkeypatch, capsys):
    monkeypatch.chdir(onnx_file.parent)
    names = run(programs("onnx_file"))
    examples = ["in 17 weeks", "after 3 days"]
    assert capsys.readouterr().out == f"{translator(examples)}\n"
    short = [text for text in sentences if text.strip() and len(text) < 40]
    assert names["translate"](short) == translator(short)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_extensions") is None, reason="needs its operators"
)
def test_the_program_of_strings_does_so_without_tensorflow(light, tmp_path, python):
    path = tmp_path / "demo.onnx"
    export_onnx(light, path, ["in 3 weeks"], OnnxOptions(tokenizer=True))
    (program,) = programs("onnx_string_file")
    printed = python(f"import os, sys\nos.chdir(sys.argv[1])\n{program.code}", tmp_path)
    assert printed == f"{light(['in 17 weeks', 'after 3 days'])}\n"
