"""Tokens of words in the graph of a SavedModel are those of a `Wording` in a run."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_translators import translator

from keras_transformer import Beam
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.export.saved_model.words import WordTokens
from keras_transformer.tasks.wording import Wording, WordingTokens

BANNED = ["Tagen", "in 3", "weeks", "y", "été", "猫", "12 weeks days", "ß"]
TERMS = {"a": "Tagen", "b": ("weeks", "in 4"), "c": "d"}


@pytest.fixture(scope="module")
def tokens():
    words = WordTokens(translator())
    return tf.function(lambda **strings: words(strings), autograph=False)


def rows(ids):
    """The rows of `[..., Q]` without padding, a set."""
    found = {
        tuple(filter(None, row)) for row in tf.reshape(ids, [-1, ids.shape[-1]]).numpy().tolist()
    }
    return found - {()}


def of_run(**settings):
    return WordingTokens(Wording(**settings), translator().target_tokenizer)


def test_banned_phrases_have_all_their_ways(tokens):
    (ids,), errors = tokens(banned=tf.constant(["\n".join(BANNED), "\n".join(BANNED[:2]) + "\n"]))
    assert not any(errors.numpy())
    for row, phrases in zip(ids, (BANNED, BANNED[:2]), strict=True):
        assert rows(row) == rows(tf.constant(of_run(banned=phrases).phrases))
    assert len(rows(ids[0])) > 10 > len(rows(ids[1])) > 3
    assert not tokens(banned=tf.constant(["", "猫"]))[0][0].numpy().any()
    assert tokens(banned=tf.zeros([0], tf.string))[0][0].shape[0] == 0


def test_prefixes_are_those_of_a_run(tokens):
    texts = ["in 3 Tagen", "", "猫 in"]
    (ids,), _ = tokens(prefix=tf.constant(texts))
    (expected,) = of_run(prefix=texts).values(texts, range(3))
    assert ids.numpy().tolist() == expected.numpy().tolist()


def test_terms_have_their_spellings_and_a_repeated_term_counts_once(tokens):
    """A repeated term would have more weight in the banks of a beam."""
    (ids,), _ = tokens(terms=tf.constant(["Tagen\nweeks\tin 4\nd", "\n".join(["weeks\tin 4"] * 3)]))
    run = of_run(glossary={**TERMS, "e": ["weeks", "in 4"]})
    (expected,) = run.values(["a b c", "e b"], range(2))
    for ours, theirs in zip(ids, expected, strict=True):
        assert [rows(term) for term in ours] == [rows(term) for term in theirs]
    assert [bool(rows(term)) for term in ids[1]] == [True, False, False]
    assert Wording(glossary={"a": "d", "b": ["d"]}).terms_of("a b") == [("d",)]


@pytest.fixture(scope="module")
def signature():
    search = Beam(5, length_penalty=1.0)
    made = make_endpoints(translator(), search, token_scores=False, takes_words=True)
    return next(endpoint for endpoint in made if endpoint.name == "words")


def test_no_input_has_an_axis_that_tensorflow_serving_pads(signature):
    """It would pad an axis after the batch with the first string of a request, a real word."""
    assert [spec.shape.rank for spec in signature.inputs] == [1, 1, 1, 1]


def test_words_of_a_sentence_do_not_influence_others(signature):
    """Terms that the vocabulary cannot write and bytes that are no text make a row invalid."""
    request = {
        "sentences": ["in 3 days", "in 12 weeks", "days", "days", "days", "in 3 days"],
        "prefix": ["", "in", "", "", b"\xff", ""],
        "banned": ["y\nin 3", "", "", b"\xc3", "", ""],
        "terms": ["Tagen\n12", "12", "Tagen\n猫", "", "", b"d\t\xff"],
    }
    together = signature.function(*map(tf.constant, request.values()))
    assert together["score"].numpy()[2:].tolist() == [np.float32(-1e9)] * 4
    assert together["translation"].numpy()[2:].tolist() == [b""] * 4
    assert [error.decode() for error in together["error"].numpy()] == [
        *("", "", "`terms` has a term with characters that the vocabulary lacks."),
        *(f"`{name}` is not valid UTF-8." for name in ("banned", "prefix", "terms")),
    ]
    assert together["complete"].shape == together["truncated"].shape == [6]
    for number in range(2):
        alone = signature.function(*(tf.constant([row[number]]) for row in request.values()))
        assert alone["translation"][0] == together["translation"][number] != b""
        np.testing.assert_allclose(alone["score"][0], together["score"][number], atol=1e-4)


def test_words_that_would_take_long_are_an_error_of_their_sentence(tokens):
    """Segmentations of phrases of 100,000 characters would need terabytes."""
    several = "\n".join(["in"] * 250)
    banned = [several, f"{several}\ny", "3" * 100, "é" * 101, "y" * 100_000, "Tagen"]
    terms = ["\n".join(["d\te"] * 25), "", "y" * 1000, "", "", "\n".join(["d"] * 49 + ["d\te"])]
    ids, errors = tokens(banned=tf.constant(banned), terms=tf.constant(terms))
    long = "`banned` has a phrase of more than 100 characters. Ban a shorter part of it, which also"
    assert [error.decode() for error in errors.numpy()] == [
        *("", "`banned` has more than 250 phrases for a sentence. Leave some out."),
        *("", *[f"{long} bans the phrase."] * 2),
        "`terms` has more than 50 terms and spellings for a sentence. Leave some out.",
    ]
    for row in (1, 3, 4, 5):
        assert not any(values[row].numpy().any() for values in ids)
    assert rows(ids[0][0]) and rows(ids[0][2])
