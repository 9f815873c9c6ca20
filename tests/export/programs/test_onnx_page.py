"""The program in docs/onnx.md, exactly as on the page."""

import pytest
from documents import blocks, run

from keras_transformer.export import export_onnx

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.mark.slow
def test_it_translates_as_the_model_does(
    translator, sentences, tmp_path, monkeypatch, capsys, page="docs/onnx.md"
):
    export_onnx(translator, tmp_path / "demo.onnx", sentences)
    monkeypatch.chdir(tmp_path)
    names = run(blocks(page, "python"))
    examples = ["in 17 weeks", "after 3 days"]
    assert capsys.readouterr().out == f"{translator(examples)}\n"
    short = [text for text in sentences if text.strip() and len(text) < 40]
    assert names["translate"](short) == translator(short)
