"""Terms and banned phrases: a wide beam finds exactly the sentences that plain Python allows."""

import functools
import itertools

import numpy as np
import pytest
import reference
import tensorflow as tf
from searching import by_beam, by_greedy, by_sample
from uncertain_models import BOS, EOS, PAD, logits_of, sources, talkative, unpadded

from keras_transformer import Beam
from keras_transformer.decoding import Constraints, SearchOptions

SIZE, LIMIT, WIDTH = 8, 4, 130
BANNED = [False, True, False, False, False, False, False, True]  # 4, 5, 6 and the end remain
WORDS = (4, 5, 6)
STARTS = [False, True, False, False, True, False, True, True]  # 5 continues a word
SCORES = {"rtol": 0, "atol": 1e-4}
# Terms of three sentences: lists of spellings.
TERMS = [[], [[(5, 6), (6, 6)], [(4,)]], [[(4, 4)]]]
PHRASES = [(5, 5), (4,), (6, 5, 4)]


@functools.cache
def model():
    return talkative(vocab_size=SIZE)


@pytest.fixture(autouse=True, scope="module")
def built_outside_of_graphs():
    """Builds the model before any graph is traced, as its variables would belong to the graph."""
    model()


def batch():
    return sources(SIZE)[:3]


def array(terms, shape=(2, 2, 2)):
    """Returns the terms of sentences as token ids `[B, C, A, Q]`."""
    ids = np.full([len(terms), *shape], PAD, "int32")
    for b, of_row in enumerate(terms):
        for c, spellings in enumerate(of_row):
            for a, spelling in enumerate(spellings):
                ids[b, c, a, : len(spelling)] = spelling
    return ids


def phrases(rows, length=3):
    return np.array([[*row, *[PAD] * (length - len(row))] for row in rows], "int32")


def contains(words, phrase, whole=False):
    """Returns whether a sentence contains a phrase; if `whole`, before a word or the end."""
    for i in range(len(words) - len(phrase) + 1):
        following = [*words, EOS][i + len(phrase)]
        ends = not whole or following == EOS or STARTS[following]
        if tuple(words[i : i + len(phrase)]) == tuple(phrase) and ends:
            return True
    return False


def has_terms(words, terms, whole):
    words = [word for word in words if word != EOS]
    return all(any(contains(words, one, whole) for one in spellings) for spellings in terms)


@functools.cache
def gains(b, words):
    target = np.array([[BOS, *words]], "int32")
    return reference.log_probabilities(logits_of(model())(batch()[b : b + 1], target))[0, -1]


def total(b, words):
    return sum(gains(b, words[:i])[word] for i, word in enumerate(words))


def allowed_sentences(b, terms, banned, whole):
    """Returns all sentences without a banned phrase that have the terms, with their scores.

    Those cut at the limit come after those that end.
    """
    sentences = []
    for n in range(LIMIT + 1):
        for words in itertools.product(WORDS, repeat=n):
            if any(contains(words, phrase) for phrase in banned):
                continue
            if has_terms(words, terms, whole):
                sentences.append(words if n == LIMIT else (*words, EOS))
    return sorted(sentences, key=lambda words: (EOS not in words, -total(b, words)))


@pytest.mark.parametrize(
    "terms, banned, whole",
    [
        (TERMS, [], False),
        pytest.param(TERMS, [], True, marks=pytest.mark.slow),
        (None, PHRASES, False),
        pytest.param(TERMS, [(6, 5, 4), (5, 5)], False, marks=pytest.mark.slow),
    ],
)
def test_a_wide_beam_finds_all_allowed_sentences(terms, banned, whole):
    constraints = Constraints(
        banned=BANNED,
        banned_phrases=phrases(banned) if banned else None,
        terms=None if terms is None else array(terms),
        word_starts=STARTS if whole else None,
    )
    tokens, scores = by_beam(
        model(), batch(), WIDTH, WIDTH, normalization="none", max_length=LIMIT,
        constraints=constraints,
    )  # fmt: skip
    for b in range(3):
        expected = allowed_sentences(b, [] if terms is None else terms[b], banned, whole)
        assert len(expected) > 5
        received = [tuple(unpadded(row)) for row in tokens[b].numpy() if row[0] != PAD]
        assert received == expected
        right = [total(b, words) for words in expected]
        np.testing.assert_allclose(scores[b, : len(right)], right, **SCORES)


@pytest.mark.slow
@pytest.mark.parametrize("stopping", ["count", "score", "narrow"])
def test_a_small_beam_has_the_terms_of_each_row_and_those_of_no_other(stopping):
    settings = {"size": 4, "stopping": stopping, "max_length": 9}
    constraints = Constraints(terms=array(TERMS))
    tokens, scores = by_beam(model(), batch(), constraints=constraints, **settings)
    for b in range(3):
        assert has_terms(unpadded(tokens[b, 0].numpy()), TERMS[b], whole=False)
        alone, score = by_beam(
            model(), batch()[b : b + 1], constraints=Constraints(terms=array(TERMS[b : b + 1])),
            **settings,
        )  # fmt: skip
        np.testing.assert_array_equal(alone[0], tokens[b])
        np.testing.assert_allclose(score[0], scores[b], **SCORES)


@pytest.mark.parametrize(
    "stopping",
    ["count", *(pytest.param(name, marks=pytest.mark.slow) for name in ("score", "narrow"))],
)
def test_no_terms_and_no_phrases_change_nothing(stopping):
    settings = {"size": 3, "n_best": 3, "stopping": stopping, "max_length": 9, "token_scores": True}
    plain = by_beam(model(), batch(), constraints=Constraints(), **settings)
    for nothing in (
        Constraints(terms=np.zeros([3, 0, 1, 1], "int32"), banned_phrases=np.zeros([0, 1], int)),
        Constraints(terms=array([[], [], []]), banned_phrases=np.zeros([2, 3], "int32")),
    ):
        outputs = by_beam(model(), batch(), constraints=nothing, **settings)
        for name, expected in plain.items():
            np.testing.assert_array_equal(outputs[name], expected)


@pytest.mark.slow
def test_cached_is_uncached():
    """Stages of the cache, and a cache of fixed size, give the same outputs."""
    constraints = Constraints(terms=array(TERMS), banned_phrases=phrases(PHRASES[:1]))
    beam = Beam(4, max_length=9, extra_length=None)
    found = [
        beam(model(), batch(), SearchOptions(constraints=constraints, cache_stages=stages))
        for stages in ((), (3, 6), None)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other.tokens, found[0].tokens)
        np.testing.assert_allclose(other.scores, found[0].scores, **SCORES)


@pytest.mark.parametrize("stopping", ["count", "score", "narrow"])
def test_terms_that_do_not_fit_are_begun_and_the_output_is_cut(stopping):
    constraints = Constraints(terms=array([[], [], [[(4, 4, 5)], [(6, 6)]]], (2, 1, 3)))
    found = Beam(4, max_length=3, extra_length=None, stopping=stopping)(
        model(), batch(), SearchOptions(constraints=constraints)
    )
    words = unpadded(found.tokens[2, 0].numpy())
    assert not found.complete[2, 0] and len(words) == 3 and found.scores[2, 0] > -100
    assert contains(words, (4, 4, 5)) or contains(words, (6, 6))


def test_a_banned_phrase_is_never_sampled_or_found_greedily():
    plain = by_greedy(model(), batch(), 9)[0].numpy()
    pairs = sorted({tuple(row[:2]) for row in plain if EOS not in row[:2]})
    constraints = Constraints(banned_phrases=phrases(pairs, 2))
    for search in (by_greedy, by_sample, by_beam):
        tokens = search(model(), batch(), max_length=9, constraints=constraints)[0].numpy()
        rows = tokens.reshape([-1, tokens.shape[-1]])
        assert pairs and not any(contains(unpadded(row), pair) for row in rows for pair in pairs)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"banned_phrases": [4]}, r"`banned_phrases` must be token ids.* Received: shape \(1,\)"),
        ({"terms": [[[4]]]}, r"`terms` must be token ids, integers \[B, C, A, Q\].*\(1, 1, 1\)"),
        (
            {"terms": np.zeros([1, 1, 1, 0], int)},
            r"with at least one spelling and one token\. Received: shape \(1, 1, 1, 0\)",
        ),
        ({"terms": [[[[4]]]], "word_starts": [True]}, r"`word_starts` must be booleans.* V = 8"),
    ],
)
def test_wrong_constraints_are_errors(wrong, message):
    with pytest.raises(ValueError, match=message):
        by_beam(model(), batch(), constraints=Constraints(**wrong))


@pytest.mark.parametrize("search", [by_greedy, by_sample])
def test_terms_need_a_beam(search):
    with pytest.raises(ValueError, match="`terms` of `Constraints` need a `Beam`, which keeps"):
        search(model(), batch(), constraints=Constraints(terms=array(TERMS)))


def test_sizes_and_terms_exclude_each_other():
    constraints = Constraints(terms=array(TERMS))
    with pytest.raises(ValueError, match="`sizes` has no effect with `terms` of `Constraints`"):
        by_beam(model(), batch(), constraints=constraints, sizes=tf.constant([1, 2, 3]))
