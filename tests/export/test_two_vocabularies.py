"""Exports of a model with separate vocabularies for sources and targets."""

import pathlib

import pytest
from support import randomise

import keras_transformer
from keras_transformer import (
    Beam,
    Transformer,
    TransformerConfig,
    Translator,
)
from keras_transformer.export import (
    LiteRTOptions,
    SavedModelOptions,
    export_ctranslate2,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer


@pytest.fixture(scope="module")
def two_vocabularies():
    """A model whose source and target tokenizers differ in size and in tokens."""
    from types import SimpleNamespace

    from phrases import phrases

    from keras_transformer.training.vocabulary import learn_vocabulary

    options = {"model_type": "unigram", "split_digits": True, "character_coverage": 1.0}
    source, target = (
        SentencePieceTokenizer(
            learn_vocabulary(
                [pair[side] for pair in phrases()], SimpleNamespace(size=size, **options)
            )
        )
        for side, size in ((0, 45), (1, 49))
    )
    ids = {name: getattr(source, name) for name in ("pad_id", "bos_id", "eos_id")}
    sizes = {"vocab_size": 45, "target_vocab_size": 49, "max_length": 64, "num_layers": 2}
    sizes |= {"d_model": 24, "d_ff": 40, "num_heads": 3}
    config = TransformerConfig(**ids, **sizes, dropout=0.0, tie="none", norm="pre")
    return Translator(randomise(Transformer(config)), (source, target), max_length=20)


@pytest.mark.slow
@pytest.mark.long
def test_two_vocabularies_are_exported_to_every_format(two_vocabularies, sentences, tmp_path):
    translator = two_vocabularies
    texts = sentences[:12]
    expected = translator(texts)
    assert len(set(expected)) > 6, "outputs depend on the source"
    source, target = translator.tokenizers
    assert source.model != target.model
    report = export_saved_model(
        translator, tmp_path / "m", texts, SavedModelOptions(alignment=(-1, None))
    )
    assert report["agreement"] == 1.0
    outputs = SavedModelTranslator(report["path"]).answer_batch(texts)
    assert [output.text for output in outputs] == expected
    pieces = SessionModel(report["path"]).run("alignment", sentences=texts[:1])
    ids = source.encode(texts[:1]).to_list()[0]
    assert [piece.decode() for piece in pieces["source_pieces"][0]] == source.pieces(ids)
    report = export_litert(
        translator, tmp_path / "x.tflite", texts, LiteRTOptions(lengths=[20], tokenizer=True)
    )
    assert report["agreement"] == report["strings"]["agreement"] == 1.0
    loaded = LiteRTTranslator(report["path"])
    assert [output.text for output in loaded.answer_batch(texts)] == expected
    assert loaded.tokenizers.source.model == source.model
    assert loaded.tokenizers.target.model == target.model


@pytest.mark.long
@pytest.mark.slow
def test_two_vocabularies_are_exported_to_onnx(two_vocabularies, sentences, tmp_path):
    pytest.importorskip("onnxruntime")
    path, texts = tmp_path / "x.onnx", sentences[:12]
    assert export_onnx(two_vocabularies, path, texts)["agreement"] == 1.0
    loaded = keras_transformer.open(path)
    assert loaded(texts) == two_vocabularies(texts)
    assert not loaded.tokenizers.shared


@pytest.mark.long
@pytest.mark.slow
def test_two_vocabularies_are_exported_to_ctranslate2(two_vocabularies, sentences, tmp_path):
    pytest.importorskip("ctranslate2")
    from keras_transformer.export.ctranslate2.translator import CTranslate2Translator

    texts = [text for text in sentences[:12] if text.strip()]
    report = export_ctranslate2(two_vocabularies, tmp_path / "c", texts)
    assert report["agreement"] == 1.0
    outputs = CTranslate2Translator(tmp_path / "c").answer_batch(texts)
    assert [output.text for output in outputs] == two_vocabularies(texts)
    files = {path.name for path in (tmp_path / "c").iterdir()}
    assert {"source.model", "target.model"} <= files and "tokenizer.model" not in files


@pytest.mark.slow
@pytest.mark.long
def test_a_summarizer_is_exported_to_every_format(two_vocabularies, sentences, tmp_path):
    from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator
    from keras_transformer.pipelines import Summarizer, Summary

    summarizer = Summarizer(two_vocabularies.model, two_vocabularies.tokenizers, 20)
    texts = [text for text in sentences[:12] if text.strip()]
    expected = summarizer(texts)
    report = export_saved_model(summarizer, tmp_path / "m", texts, SavedModelOptions(Beam(3)))
    assert report["agreement"] == 1.0
    loaded = SavedModelTranslator(report["path"])
    outputs = loaded.answer_batch(texts)
    assert [output.text for output in outputs] == summarizer(texts, Beam(3))
    assert type(outputs[0]) is Summary and loaded.blank
    answer = SessionModel(report["path"]).run("serving_default", sentences=texts)
    assert [text.decode() for text in answer["summary"]] == summarizer(texts, Beam(3))
    readme = (pathlib.Path(report["path"]) / "README.md").read_text()
    assert "Summarises texts, with tokenizer and search in the graph" in readme
    assert "translation" not in answer
    report = export_litert(
        summarizer, tmp_path / "x.tflite", texts, LiteRTOptions(lengths=[20], tokenizer=True)
    )
    assert report["agreement"] == report["strings"]["agreement"] == 1.0
    for loaded in (LiteRTTranslator(report["path"]), LiteRTStringTranslator(report["path"])):
        outputs = loaded.answer_batch(texts)
        assert [output.text for output in outputs] == expected and type(outputs[0]) is Summary
        assert loaded.metadata["task"] == "summarization"
    pytest.importorskip("ctranslate2")
    report = export_ctranslate2(summarizer, tmp_path / "c", texts)
    assert report["agreement"] == 1.0


def test_a_file_of_an_unknown_task_is_reported(two_vocabularies, tmp_path):
    from keras_transformer.export.litert.packed import pack, unpack

    path = tmp_path / "x.tflite"
    metadata = {"format": 3, "max_length": 20, "quantize": "none"}
    metadata["signatures"] = [
        {"name": "g", "batch_size": 1, "source_length": 9, "target_length": 20}
    ]
    unknown = "x.tflite has the task 'cooking', which is unknown: import the module that"
    for task, reason in (({}, "its metadata.json cannot be read"), ({"task": "cooking"}, unknown)):
        pack(path, b"\x1c\0\0\0TFL3", two_vocabularies.tokenizers, {**metadata, **task})
        with pytest.raises(ValueError, match=reason):
            unpack(path)
