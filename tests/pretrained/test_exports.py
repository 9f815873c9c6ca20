"""Exports of converted models: rules of their outputs and provenance of their weights."""

import json
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from opus_folders import CODES, write_folder

from keras_transformer import Beam, Greedy, from_pretrained
from keras_transformer.decoding import SearchOptions
from keras_transformer.export import SavedModelOptions
from keras_transformer.export.ctranslate2.export import export_ctranslate2
from keras_transformer.export.ctranslate2.translator import CTranslate2Translator
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.saved_model.export import export_saved_model

pytestmark = pytest.mark.slow
SENTENCES = [
    "a dog runs",
    ">>nld<< the cat sat on a mat",
    "seven dogs",
    "hill",
    ">>deu<< nine cats",
]
ORIGIN = {"format": "opus-mt", "name": "hf", "license": "cc-by-4.0"}
BEAM = Beam(4, 1.0, normalization="power", extra_length=None, stopping="score")


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hf")
    write_folder(folder, codes=CODES, seed=2, d_model=24, max_length=10)
    translator = from_pretrained(folder)
    model = translator.model
    factors = {"query/kernel": 3, "cross_attention/output/kernel": 6, "table": 2}
    for weight in model.weights:  # otherwise nothing would depend on the source
        for path, factor in factors.items():
            if weight.path.endswith(path):
                weight.assign(factor * weight)
    bias = model.output_bias.numpy()
    bias[[model.config.tokens.pad_id, model.config.tokens.eos_id]] = 9, 3  # the first one is banned
    model.output_bias.assign(bias)
    outputs = translator(SENTENCES)
    assert len(set(outputs)) > 3 and translator.greedy == Greedy(max_length=9)
    return translator


@pytest.mark.long
def test_a_saved_model_in_a_session_and_in_python(translator, tmp_path):
    """`export_saved_model` compares every signature with the model in memory in both."""
    report = export_saved_model(
        translator, tmp_path / "m", SENTENCES, SavedModelOptions(search=BEAM), origin=ORIGIN
    )
    assert report["agreement"] == 1
    assert json.loads((tmp_path / "m/1/assets.extra/origin.json").read_text()) == ORIGIN
    assert "- license: cc-by-4.0\n" in (tmp_path / "m/1/README.md").read_text()
    source = translator.encode(SENTENCES)[0].numpy()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "m/1"))
        signature = meta.signature_def["serving_default"]
        name = next(iter(signature.inputs.values())).name
        text = signature.outputs["translation"].name
        texts = session.run(text, {name: [sentence.encode() for sentence in SENTENCES]})
        tokens = meta.signature_def["tokens"]
        name = next(iter(tokens.inputs.values())).name
        greedy = session.run(tokens.outputs["tokens"].name, {name: source})
    assert [text.decode() for text in texts] == translator(SENTENCES, search=BEAM)
    expected = translator.greedy(translator.model, source).tokens.numpy()[:, 0]
    padding = [(0, 0), (0, greedy.shape[1] - expected.shape[1])]  # its search has a lower limit
    pad_id = translator.model.config.tokens.pad_id
    np.testing.assert_array_equal(greedy, np.pad(expected, padding, constant_values=pad_id))
    assert (greedy != Greedy()(translator.model, source).tokens.numpy()[:, 0]).any()


@pytest.mark.long
def test_a_tflite_file(translator, tmp_path):
    path = tmp_path / "m.tflite"
    report = export_litert(translator, path, SENTENCES, origin=ORIGIN)
    assert report["agreement"] == 1
    loaded = LiteRTTranslator(path, Greedy())
    found = [best.text for best in loaded.answer_batch(SENTENCES)]
    assert found == translator(SENTENCES, search=translator.greedy)
    assert found != translator(SENTENCES, search=Greedy())
    with pytest.raises(ValueError, match=r"`max_length` of the greedy search of .* is 9, which"):
        LiteRTTranslator(path, Greedy(max_length=8))
    loaded = LiteRTTranslator(path)
    assert [best.text for best in loaded.answer_batch(SENTENCES)] == translator(SENTENCES)
    metadata = json.loads(zipfile.ZipFile(path).read("metadata.json"))
    assert (metadata["license"], metadata["origin"]) == ("cc-by-4.0", ORIGIN)


def test_a_folder_for_ctranslate2(translator, tmp_path):
    """It has no forced end: the end token is added where its limit, shorter by one, was reached."""
    report = export_ctranslate2(translator, tmp_path / "m", SENTENCES, origin=ORIGIN)
    assert report["agreement"] == 1
    assert json.loads((tmp_path / "m/config.json").read_text())["origin"] == ORIGIN
    loaded = CTranslate2Translator(tmp_path / "m")
    ids = translator.source_tokenizer.encode(SENTENCES)
    tokens, scores = loaded.decode(ids.to_list())
    source = ids.to_tensor(translator.model.config.tokens.pad_id)
    options = SearchOptions(cache_length=translator.max_length)
    expected = translator.greedy(translator.model, source, options)
    np.testing.assert_array_equal(tokens, expected.tokens)
    np.testing.assert_allclose(scores, expected.scores, rtol=0, atol=1e-4)
    assert (tokens[:, 0, 8] == translator.model.config.tokens.eos_id).any()
