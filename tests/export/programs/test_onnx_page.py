"""The program in docs/onnx.md, exactly as on the page."""

import pytest
from documents import blocks, run

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.mark.slow
def test_it_translates_as_the_model_does(
    translator, sentences, onnx_file, monkeypatch, capsys, page="docs/onnx.md"
):
    monkeypatch.chdir(onnx_file.parent)
    names = run(blocks(page, "python"))
    examples = ["in 17 weeks", "after 3 days"]
    assert capsys.readouterr().out == f"{translator(examples)}\n"
    short = [text for text in sentences if text.strip() and len(text) < 40]
    assert names["translate"](short) == translator(short)
