"""Entities of raw texts: offsets in characters, whatever a tokenizer does to the text."""

import functools
import json

import bpe_in_python
import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from pipelines import SIZES, tokenizer

from keras_transformer.models import TokenClassifier, TokenClassifierConfig
from keras_transformer.pipelines import Entity, TokenClassificationPipeline
from keras_transformer.tasks.token_classification.entities import EntityCodec
from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.tokenizers import ByteBPETokenizer, WordPieceTokenizer

LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz.,()'’", "paris", "jose",
          "new", "york", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]  # fmt: skip


@functools.cache
def wordpiece():
    return WordPieceTokenizer(PIECES, BertNormalizer(lowercase=True, strip_accents=True))


def entities(text, named, known=None, longest=64):
    """Returns the entities of a text whose tokens get labels by their names, others `O`."""
    known = known or wordpiece()
    codec = EntityCodec(known, longest, LABELS).changed(spans=True)
    inputs, rest = codec.encode(tf.constant([text]))
    names = known.pieces(inputs["source"][0].numpy())
    places = [LABELS.index(named.get(name, "O")) for name in names]
    logits = 4.0 * np.eye(len(LABELS), dtype="float32")[places]
    answers = codec.answers(codec.outputs(tf.constant(logits[None])), rest)
    (result,) = codec.results({name: value.numpy() for name, value in answers.items()})
    for one in result.entities:
        assert text[one.start : one.end] == one.text
    return result


@pytest.mark.parametrize(
    ("text", "found"),
    [
        slow("We met in Paris.", ["Paris"]),
        ("Paris, PARIS and (paris)", ["Paris", "PARIS", "paris"]),
        slow("x \u200bPari\u0301s\tto  New   York\u0301!", ["Pari\u0301s", "New   York\u0301"]),
        ("😀 José 👩\u200d👩\u200d👧 in Paris", ["José", "Paris"]),
        slow("Jose\u0301’s Paris", ["Jose\u0301", "Paris"]),
        ("ＰＡＲＩＳ", []),
        slow("", []),
        (" \t ", []),
    ],
)
def test_offsets_count_characters_of_the_raw_text(text, found):
    named = {"paris": "B-LOC", "jose": "B-PER", "new": "B-LOC", "york": "I-LOC"}
    assert [one.text for one in entities(text, named).entities] == found


def test_entities_have_label_and_mean_probability():
    result = entities("to New York", {"new": "B-LOC", "york": "I-LOC"})
    probability = np.exp(4) / (np.exp(4) + 4)
    (one,) = result.entities
    assert (one.label, one.start, one.end) == ("LOC", 3, 11)
    assert one.score == pytest.approx(probability, abs=1e-6)
    expected = {"label": "LOC", "start": 3, "end": 11, "score": 0.93174, "text": "New York"}
    assert json.loads(result.text) == [expected]


def test_a_word_has_the_label_of_its_first_token():
    named = {"q": "B-PER", "##u": "B-LOC", "a": "I-PER"}
    found = entities("quo a", named).entities
    assert [(one.label, one.text) for one in found] == [("PER", "quo a")]


def test_words_beyond_the_limit_have_no_entity():
    result = entities("paris paris quo quo paris", {"paris": "B-LOC"}, longest=5)
    assert result.truncated and [one.start for one in result.entities] == [0, 6]
    assert not entities("paris a a", {"paris": "B-LOC"}, longest=5).truncated


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a cat.", ["cat"]),
        ("“cat” (cat), cat!?", ["cat", "cat", "cat"]),
        ("ｃａｔ! … cat", ["ｃａｔ", "…", "cat"]),  # NFKC
        ("a \u00a0cat\u200b", ["cat\u200b"]),
    ],
)
def test_punctuation_around_a_word_of_sentencepiece_is_left_out(text, found):
    named = {"▁cat": "B-LOC", "▁": "B-LOC"}
    assert [one.text for one in entities(text, named, tokenizer()).entities] == found


@pytest.mark.parametrize("text", ["(U.S.)", "U.S.,", "„e.g.“"])
def test_an_abbreviation_keeps_its_full_stop(text):
    known = tokenizer()
    first = known.pieces(known.tokenize([text])[0][:1].numpy())
    (one,) = entities(text, {first[0]: "B-LOC"}, known).entities
    assert one.text == text.strip("(),„“")


def test_words_of_bytes_have_offsets_in_characters():
    merges = [("Ġ", "a"), ("a", "b")]
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    known = ByteBPETokenizer(bpe_in_python.vocabulary(merges, special), merges)
    text = "é 😀 ab, ab"
    assert [one.start for one in entities(text, {"Ġa": "B-LOC"}, known).entities] == [4, 8]


@functools.cache
def token_classifier():
    config = TokenClassifierConfig(vocab_size=30, **SIZES, labels=LABELS)
    return TokenClassificationPipeline(TokenClassifier(config), tokenizer())


def test_a_token_classifier_returns_the_entities_of_texts():
    texts = ["a cat, runs.", "", "the big dog"]
    results = token_classifier().entities(texts)
    for text, result in zip(texts, results, strict=True):
        assert result.labels == token_classifier().answer([text])[0].labels  # the same tokens
        assert all(isinstance(one, Entity) for one in result.entities)
        assert all(one.text == text[one.start : one.end] != "" for one in result.entities)
    assert any(result.entities for result in results)


def test_the_setting_is_a_flag():
    with pytest.raises(TypeError, match="`spans` must be True or False"):
        token_classifier().with_settings(spans="yes")


def test_a_codec_without_the_setting_labels_the_words_between_spaces():
    codec = EntityCodec(wordpiece(), 64, LABELS)
    text = tf.constant(["in Paris."])
    words = [c.encode(text)[1]["first"].shape[1] for c in (codec, codec.changed(spans=True))]
    assert words == [2, 3] and codec.metadata() == codec.changed(spans=True).metadata()
