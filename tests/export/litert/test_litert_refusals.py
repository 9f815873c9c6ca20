"""Exports that are refused: before a .tflite file is written, or because it does not agree."""

import re
import sys

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from litert_files import model_of
from support import listing

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.export import LiteRTOptions, agreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import convert as conversion
from keras_transformer.export.litert import generated
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.installation import install_hint

pytest.importorskip("ai_edge_litert")


@pytest.fixture
def skip_conversion(export, monkeypatch):
    """Skips the conversion in a test: the converter returns its earlier result."""
    content = model_of(export("none")[0])
    monkeypatch.setattr(generated, "convert", lambda *args, **kwargs: content)


def test_wrong_arguments_are_refused_before_any_work(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "convert", None)
    path = tmp_path / "x.tflite"
    for wrong, message in [
        (
            {"quantize": "int2"},
            "`quantize` must be one of none, .*, int8_static, int4. .*='int2'",
        ),
        ({"lengths": [16]}, "`lengths` must end in the pipeline's `max_length`, 20.*16"),
        ({"lengths": [0, 20]}, "`lengths` must .* Received: \\[0, 20\\]"),
        ({"batch_sizes": []}, "`batch_sizes` must be .* Received: batch_sizes=\\[\\]"),
        ({"batch_sizes": [0]}, "`batch_sizes` must be .* Received: batch_sizes=\\[0\\]"),
        (
            {"min_agreement": 2},
            "`min_agreement` must be between 0 and 1, or None. .*=2",
        ),
        ({"alignment": (5, 0)}, "`alignment` must be a pair of a decoder layer"),
        ({"samples": [" "]}, "at least one sentence"),
    ]:
        with pytest.raises(ValueError, match=message):
            export_litert(
                translator, path, **asked(LiteRTOptions, **{"samples": ["in 3 weeks"], **wrong})
            )
    assert listing(tmp_path) == []


def test_without_litert_the_export_is_refused_before_any_work(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "convert", None)
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(ValueError, match=re.escape(install_hint("litert"))):
        export_litert(translator, tmp_path / "x.tflite", ["in 3 weeks"])
    assert listing(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True], ids=["strings"])
def test_a_model_that_needs_other_operators_is_refused_by_name(
    unigram_translator, tmp_path, monkeypatch, inside
):
    tokenizer = unigram_translator.source_tokenizer
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, num_layers=1, d_model=8, d_ff=8, num_heads=1, max_length=6
    )
    translator = Translator(Transformer(config), tokenizer)
    dense = translator.model.encoder.blocks[0].feed_forward.inner
    dense.activation = lambda x: tf.math.ndtri(tf.math.bessel_i0(x))
    # The configuration has no such activation, so the model itself is converted.
    monkeypatch.setattr(conversion.StandIns, "copy", lambda stand_ins, model, kernels: model)
    message = "x.tflite: LiteRT has no builtin operator for BesselI0, Ndtri"
    with pytest.raises(ExportError, match=message):
        export_litert(
            translator, tmp_path / "x.tflite", ["in 3 weeks"], LiteRTOptions(tokenizer=inside)
        )
    assert listing(tmp_path) == []


@pytest.fixture(scope="module")
def file_of_another_model(export, translator):
    """The float32 file with one weight changed slightly."""
    content = model_of(export("none")[0])
    table = translator.model.source_embedding.table.numpy()
    changed = table.copy()
    changed[7, 3] += 0.05
    return content.replace(table.tobytes(), changed.tobytes())


@pytest.mark.slow
def test_a_file_that_differs_by_one_weight_is_detected(
    file_of_another_model, translator, sentences, tmp_path, monkeypatch
):
    monkeypatch.setattr(generated, "convert", lambda *args, **kwargs: file_of_another_model)
    with pytest.raises(ExportError, match="x.tflite.* differ"):
        export_litert(translator, tmp_path / "new" / "x.tflite", sentences)
    assert listing(tmp_path) == []


@pytest.fixture
def damaged(export, translator, monkeypatch):
    """A converter that returns a model whose embeddings are wrong by a fifth."""
    table = translator.model.source_embedding.table.numpy()
    rng = np.random.default_rng(0)
    wrong = (table + 0.2 * rng.normal(size=table.shape)).astype("float32")
    content = model_of(export("none")[0]).replace(table.tobytes(), wrong.tobytes())
    monkeypatch.setattr(generated, "convert", lambda *args, **kwargs: content)


@pytest.mark.slow
def test_a_harmful_quantisation_is_detected(damaged, translator, sentences, tmp_path):
    path = tmp_path / "x.tflite"
    message = "x.tflite: .* by .* nats per token, but at most 0.1 .*% of the tokens are the same"
    with pytest.raises(ExportError, match=message):
        export_litert(translator, path, sentences, LiteRTOptions(quantize="int8"))
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_required_share_of_equal_tokens_is_a_limit(damaged, translator, sentences, tmp_path):
    path = tmp_path / "x.tflite"
    with pytest.raises(ExportError, match="x.tflite: .*% of the tokens .* requires 90 %"):
        export_litert(
            translator, path, sentences, LiteRTOptions(quantize="int8", min_agreement=0.9)
        )
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_loss_of_bleu_is_detected(damaged, translator, sentences, tmp_path):
    path = tmp_path / "x.tflite"
    right = translator(sentences)

    def export(references, **options):
        chosen = LiteRTOptions("int8", license="MIT", max_score_loss=1e9, **options)
        return export_litert(translator, path, sentences, chosen, references=references)

    for options, message in [
        ({"references": right}, "x.tflite: BLEU falls from 100.0 to .* than the 1 that .max_loss"),
        ({"references": ["x"]}, "`references` must have one .*: 37 samples, 1 references"),
        ({"references": right, "max_loss": -1}, "`max_loss` must be at least 0 and finite. .*=-1"),
    ]:
        with pytest.raises(ValueError, match=message):
            export(**options)
    assert listing(tmp_path) == []
    report = export(right, max_loss=100)
    assert report["bleu"]["difference"] == report["bleu"]["exported"] - report["bleu"]["in_memory"]
    metadata = LiteRTTranslator(path).metadata
    assert metadata["agreement"]["chrf"] == report["chrf"]
    assert metadata["license"] == "MIT"


@pytest.mark.slow
def test_an_older_export_is_replaced(skip_conversion, translator, tmp_path):
    path = tmp_path / "x.tflite"
    path.write_bytes(b"\x1c\0\0\0TFL3 an older one")
    export_litert(translator, path, ["in 17 weeks"])
    assert LiteRTTranslator(path).answer_batch(["in 17 weeks"])[0].text
    assert listing(tmp_path) == ["x.tflite"]


def test_a_file_that_is_not_an_export_is_left_alone(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "convert", None)
    for content in (b"my thesis", b""):
        (tmp_path / "x.txt").write_bytes(content)
        with pytest.raises(ExportError, match="x.txt exists and is not a .tflite file"):
            export_litert(translator, tmp_path / "x.txt", ["in 17 weeks"])
        assert (tmp_path / "x.txt").read_bytes() == content
    with pytest.raises(ExportError, match="is a folder"):
        export_litert(translator, tmp_path, ["in 17 weeks"])


@pytest.mark.slow
def test_ctrl_c_leaves_no_file(skip_conversion, translator, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(agreement, "compare", stop)
    old = tmp_path / "x.tflite"
    old.write_bytes(b"\x1c\0\0\0TFL3 an older one")
    for path in (old, tmp_path / "new" / "y.tflite"):
        with pytest.raises(KeyboardInterrupt):
            export_litert(translator, path, ["in 17 weeks"])
    assert listing(tmp_path) == ["x.tflite"]
    assert old.read_bytes() == b"\x1c\0\0\0TFL3 an older one"


def test_a_full_disk_is_reported_in_one_line(skip_conversion, translator, tmp_path, full_disk):
    with pytest.raises(OSError, match="File too large"), full_disk(50_000):
        export_litert(translator, tmp_path / "x.tflite", ["in 17 weeks"])
    assert listing(tmp_path) == []
