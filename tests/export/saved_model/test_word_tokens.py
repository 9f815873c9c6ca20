"""Tokens of words in the graph of a SavedModel are those of a `Wording` in a run."""

import pytest
import tensorflow as tf
from tiny_translators import translator

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
    (ids,) = tokens(banned=tf.constant([BANNED, [*BANNED[:2], *[""] * 6]]))
    for row, phrases in zip(ids, (BANNED, BANNED[:2]), strict=True):
        assert rows(row) == rows(tf.constant(of_run(banned=phrases).phrases))
    assert len(rows(ids[0])) > 10 > len(rows(ids[1])) > 3
    assert not tokens(banned=tf.constant([[""], ["猫"]]))[0].numpy().any()
    assert tokens(banned=tf.zeros([2, 0], tf.string))[0].shape[0] == 2


def test_prefixes_are_those_of_a_run(tokens):
    texts = ["in 3 Tagen", "", "猫 in"]
    (ids,) = tokens(prefix=tf.constant(texts))
    (expected,) = of_run(prefix=texts).values(texts, range(3))
    assert ids.numpy().tolist() == expected.numpy().tolist()


def test_terms_have_their_spellings_and_a_repeated_term_counts_once(tokens):
    """A repeated term would have more weight in the banks of a beam."""
    (ids,) = tokens(terms=tf.constant([["Tagen", "weeks\tin 4", "d"], ["weeks\tin 4"] * 3]))
    run = of_run(glossary={**TERMS, "e": ["weeks", "in 4"]})
    (expected,) = run.values(["a b c", "e b"], range(2))
    for ours, theirs in zip(ids, expected, strict=True):
        assert [rows(term) for term in ours] == [rows(term) for term in theirs]
    assert [bool(rows(term)) for term in ids[1]] == [True, False, False]
    assert Wording(glossary={"a": "d", "b": ["d"]}).terms_of("a b") == [("d",)]


def test_a_term_that_the_vocabulary_cannot_write_is_an_error(tokens):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`terms` must have no characters that"
    ):
        tokens(terms=tf.constant([["猫"]]))
