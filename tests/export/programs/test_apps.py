"""The programs of `examples/android` and `examples/ios`: the ids and translations of Python.

LiteRT's libraries for phones do not run here: `kotlin/` and `swift/` have classes for the parts of
them and of Android that the programs use, and the compilers check the programs against them.
"""

import random

import pytest
import tensorflow as tf
from app_programs import assert_translations, each_language, tokenized
from test_browser_modules import odd_text, plain_text, vocabulary, with_standard_normalization

import keras_transformer
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.export.litert.packed import pack
from keras_transformer.tasks.strings import encode
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.tokenizers import SentencePieceTokenizer


@pytest.mark.slow
@each_language
@pytest.mark.parametrize(
    "model",
    [lambda: vocabulary("unigram", True), with_standard_normalization],
    ids=["unigram", "nmt_nfkc"],
)
def test_ids_and_texts_are_those_of_the_tokenizer(model, language, tmp_path):
    tokenizer = SentencePieceTokenizer(model())
    path = tmp_path / "x.tflite"
    pack(path, b"the bytes of a model", Tokenizers.of(tokenizer), {"format": 3})
    rng = random.Random(3)
    sentences = plain_text(rng) + odd_text(rng)
    # At the limit of 64 bytes for each of 7 tokens, also inside a character.
    sentences += ["ж" * 223, "ж" * 224, "ж" * 225, "a" + "語" * 200, "in" + " " * 500]
    rows = [row[:-1] for row in tokenizer.encode(sentences).to_list()]
    found, texts = tokenized(language, path, sentences, rows)
    assert [row[0] for row in found] == rows
    assert texts == [
        text.decode() for text in tokenizer.decode(tokenizer.encode(sentences)).numpy()
    ]
    ids, cut, empty = encode(tokenizer, tf.constant(sentences), 7)
    assert [row[1:3] for row in found] == [
        [[] if nothing else row, too_long]
        for row, too_long, nothing in zip(ids.to_list(), cut.numpy(), empty.numpy(), strict=True)
    ]


@pytest.mark.slow
@each_language
@pytest.mark.parametrize("unrolled", [False, True], ids=["loops", "unrolled"])
def test_translations_are_those_of_python(unrolled, language, light, sentences, tmp_path):
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "x.tflite"
    export_litert(light, path, sentences[:9], LiteRTOptions(lengths=(8, 16), unrolled=unrolled))
    expected = keras_transformer.open(path).answer(sentences)
    assert_translations(language, path, sentences, expected)


@pytest.mark.slow
@each_language
@pytest.mark.parametrize(
    "damaged",
    [lambda file: file[:-30], lambda file: file[:-6] + b"\xff\xff\xff\x7f" + file[-2:]],
    ids=["truncated", "offset beyond the end"],
)
def test_a_damaged_file_is_an_error(damaged, language, tmp_path):
    path = tmp_path / "x.tflite"
    tokenizers = Tokenizers.of(SentencePieceTokenizer(vocabulary("unigram", True)))
    pack(path, b"the bytes of a model", tokenizers, {"format": 3})
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.raises(AssertionError, match="notAnExport|is damaged|IndexOutOfBounds"):
        tokenized(language, path, ["a"], [])


@pytest.mark.slow
@each_language
def test_a_vocabulary_of_another_kind_is_an_error(language, tmp_path):
    path = tmp_path / "x.tflite"
    model = with_standard_normalization(vocab_size=436, byte_fallback=True)
    tokenizer = SentencePieceTokenizer(model)
    pack(path, b"the bytes of a model", Tokenizers.of(tokenizer), {"format": 3})
    with pytest.raises(AssertionError, match="unsupported|does not support"):
        tokenized(language, path, ["a"], [])
