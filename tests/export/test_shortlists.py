"""Exports of a translator with a shortlist, which search among its candidates."""

import json
import zipfile

import numpy as np
import pytest
from exporting import asked
from phrases import phrases
from tflite_products import products

import keras_transformer
from keras_transformer import Beam, Greedy, Translator
from keras_transformer.decoding import Shortlist
from keras_transformer.decoding.shortlist import candidates
from keras_transformer.export import (
    LiteRTOptions,
    OnnxOptions,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.export.searches import ModelSearch
from keras_transformer.export.shortlists import shortlist_metrics
from keras_transformer.tasks.shortlists import learn_shortlist

FIRST, BEST = 10, 6
SENTENCES = ["in 17 weeks", "after 12 hours and 30 minutes", "45 days", "", "weeks and 5 €", "in 3"]


@pytest.fixture(scope="module")
def restricted(light):
    """A shortlist that lacks a token of the first translation."""
    sources, targets = zip(*phrases()[:300], strict=True)
    learned = learn_shortlist(light, sources, targets, FIRST, BEST)
    source, target = (
        tokenizer.encode(texts[:1]).to_list()[0]
        for tokenizer, texts in zip(light.tokenizers, (SENTENCES, light(SENTENCES)), strict=True)
    )
    missing = next(token for token in target if token >= FIRST and token not in source)
    pairs = [
        (piece, token, 1)
        for piece in range(learned.vocab_size)
        for token in learned.ids[learned.offsets[piece] : learned.offsets[piece + 1]]
        if token != missing
    ]
    return light.with_shortlist(Shortlist.from_counts(pairs, learned.vocab_size, FIRST, BEST))


@pytest.fixture(autouse=True)
def two_sizes(monkeypatch):
    """Small sizes, so that exports contain both ways to search: this vocabulary is small."""
    monkeypatch.setattr(candidates, "SIZES", (48,))


@pytest.mark.slow
def test_a_translator_searches_among_the_candidates(light, restricted):
    ours, free = restricted(SENTENCES), light(SENTENCES)
    assert ours[0] != free[0] and ours[3] == free[3] == ""
    (alignment,) = restricted.align(SENTENCES[:1])
    assert alignment.translation.text == ours[0]
    (score,) = restricted.score(SENTENCES[:1], free[:1])
    assert score == light.score(SENTENCES[:1], free[:1])[0], "given outputs: among all pieces"


@pytest.mark.slow
def test_copies_of_a_translator_keep_the_shortlist_or_get_another(light, restricted):
    assert restricted.with_model(light.model).shortlist is restricted.shortlist
    assert restricted.with_shortlist(None).shortlist is light.shortlist is None
    assert restricted.with_shortlist(None).searched is light.model


@pytest.mark.slow
def test_agreement_with_the_search_among_all_tokens_is_a_metric(light, restricted):
    metrics = shortlist_metrics(restricted, SENTENCES)["shortlist"]
    ours, free = restricted(SENTENCES), light(SENTENCES)
    assert metrics["agreement"] == np.mean([a == b for a, b in zip(ours, free, strict=True)]) < 1
    assert (metrics["first"], metrics["best"]) == (FIRST, BEST)
    assert FIRST < metrics["candidates"] < 0.5 * light.model.config.output_size
    assert shortlist_metrics(light, SENTENCES) == {}


def test_the_description_of_a_search_names_the_shortlist(light, restricted):
    summary = "greedy search, restricted to the candidates of a shortlist."
    assert ModelSearch(restricted, Beam(1)).summary != ModelSearch(light, Beam(1)).summary
    assert ModelSearch(restricted, Greedy()).summary == summary


def test_a_shortlist_of_another_vocabulary_is_refused(light):
    other = Shortlist(1, 1, [0, 1], [0])
    with pytest.raises(ValueError, match="`shortlist` must fit the model's vocabularies"):
        Translator(light.model, light.tokenizers, shortlist=other)


@pytest.mark.long
@pytest.mark.slow
def test_a_file_translates_as_the_run_does_with_the_same_shortlist(
    restricted, light, tmp_path, calibration, quantize="int4"
):
    path = tmp_path / "few.tflite"
    search = Beam(2) if quantize == "none" else Greedy()
    options = {"lengths": [16], "batch_sizes": [1, 3], "search": search}
    if quantize == "int8_static":
        options["calibration"] = [line for line in calibration if len(line) < 20]
    report = export_litert(restricted, path, SENTENCES, **asked(LiteRTOptions, quantize, **options))
    in_int8 = ("FLOAT32", "INT8", False) in products(path.read_bytes())
    assert in_int8 == (quantize != "none"), "the logits of the candidates"
    if quantize == "none":
        for search in (Greedy(), Beam(2)):
            found = LiteRTTranslator(path, search).answer_batch(SENTENCES)
            found = [result.text for result in found]
            assert found == restricted(SENTENCES, search) != light(SENTENCES, search)
    assert report["shortlist"] == shortlist_metrics(restricted, SENTENCES)["shortlist"]
    with zipfile.ZipFile(path) as archive:
        metadata = json.loads(archive.read("metadata.json"))
    assert metadata["shortlist"] == {"first": FIRST, "best": BEST}


@pytest.mark.long
@pytest.mark.slow
def test_a_saved_model_translates_as_the_run_does_with_the_same_shortlist(
    restricted, light, tmp_path
):
    """Every signature is compared through both loaders while it is written."""
    report = export_saved_model(restricted, tmp_path, SENTENCES)
    assert report["shortlist"]["agreement"] < 1
    found = [result.text for result in SavedModelTranslator(tmp_path).answer_batch(SENTENCES)]
    assert found == restricted(SENTENCES) != light(SENTENCES)
    text = (tmp_path / "1" / "README.md").read_text()
    assert "greedy search, restricted to the candidates of a shortlist." in text


@pytest.mark.slow
@pytest.mark.parametrize("search", [Greedy(), Beam(3)], ids=["greedy", "beam"])
def test_an_onnx_file_translates_as_the_run_does_with_the_same_shortlist(
    search, light, restricted, tmp_path
):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "x.onnx"
    report = export_onnx(restricted, path, SENTENCES, OnnxOptions(search=search))
    assert report["agreement"] == 1.0 and report["shortlist"]["agreement"] < 1.0
    loaded = keras_transformer.open(path)
    expected = restricted(SENTENCES, search)
    assert loaded(SENTENCES) == expected != light(SENTENCES, search)
    assert loaded.metadata["shortlist"] == {"first": FIRST, "best": BEST}
