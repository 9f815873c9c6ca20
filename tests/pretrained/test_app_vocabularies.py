"""Vocabularies of converted models in the code of `examples/android` and `examples/ios`."""

import random

import pytest
import tensorflow as tf
from app_programs import assert_translations, each_language, tokenized
from opus_folders import CODES, SOURCE_TEXT, UNKNOWN_TEXTS, with_unknown_pieces, write_folder
from test_browser_page import SENTENCES

import keras_transformer
from keras_transformer import Greedy, from_pretrained
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.export.litert.packed import pack
from keras_transformer.pretrained.read import read_checkpoint


def compare(language, tokenizers, sentences, path):
    """Compares ids of texts and texts of ids with the package."""
    pack(path, b"the bytes of a model", tokenizers, {"format": 3})
    source, target = tokenizers
    rng = random.Random(1)
    rows = [rng.choices(range(target.vocab_size), k=1 + k % 11) for k in range(300)]
    rows = [[id for id in row if id != target.eos_id] for row in rows]
    found, decoded = tokenized(language, path, sentences, rows)
    ids = [row[0] for row in found]
    expected = [row[:-1] for row in source.encode(sentences).to_list()]  # without the end token
    assert dict(zip(sentences, ids, strict=True)) == dict(zip(sentences, expected, strict=True))
    texts = target.decode(tf.ragged.constant(rows, dtype=tf.int32)).numpy()
    assert decoded == [text.decode() for text in texts]


@pytest.mark.slow
@each_language
@pytest.mark.parametrize(
    "options",
    [{"codes": CODES, "gap": 3, "extra": 2}, {"separate": True}, {"gap": 1}],
    ids=["codes", "separate", "no codes"],
)
def test_ids_and_texts_are_those_of_the_tokenizers(options, language, tmp_path):
    write_folder(tmp_path / "hf", **options)
    tokenizers = read_checkpoint(tmp_path / "hf").tokenizers
    assert {*tokenizers.files()} >= {"source.model", "target.ids.json"}
    compare(language, tokenizers, SENTENCES, tmp_path / "x.tflite")


@pytest.mark.slow
@each_language
def test_characters_known_only_to_the_vocabulary_are_looked_up_as_in_python(language, tmp_path):
    with_unknown_pieces(tmp_path / "hf")
    tokenizers = read_checkpoint(tmp_path / "hf").tokenizers
    rng = random.Random(2)
    mixed = ["".join(rng.choices("abdogcet жж€漢字ÿxyzüQ1", k=1 + k % 17)) for k in range(300)]
    sentences = list(dict.fromkeys([*UNKNOWN_TEXTS, *mixed]))
    compare(language, tokenizers, sentences, tmp_path / "x.tflite")


@pytest.mark.slow
@each_language
def test_a_converted_model_translates_as_in_python(language, tmp_path):
    pytest.importorskip("ai_edge_litert")
    write_folder(tmp_path / "hf", codes=CODES)
    sentences = [*SOURCE_TEXT, ">>deu<< a dog", "", "w" * 70]
    options = LiteRTOptions(search=Greedy())
    path = tmp_path / "x.tflite"
    export_litert(from_pretrained(tmp_path / "hf"), path, sentences[:5], options)
    expected = keras_transformer.open(path).answer(sentences)
    assert_translations(language, path, sentences, expected)
