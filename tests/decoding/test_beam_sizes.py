"""Batches whose sentences have beams of different sizes: each is searched as if alone."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from searching import by_beam, by_greedy
from uncertain_models import EOS, sources, talkative

from keras_transformer.decoding import Constraints

LIMIT, WIDTH = 9, 4
SIZES = [[1, 2, 3, 4, 2], [4, 3, 2, 1, 3]]
SCORES = {"rtol": 0, "atol": 1e-4}


def decode(norm, beam_size, **options):
    options = {"n_best": beam_size, "max_length": LIMIT, **options}
    return [value.numpy() for value in by_beam(talkative(norm), sources(), beam_size, **options)]


@functools.cache
def searched(norm, beam_size):
    """Returns the outputs of a beam of one size, with defaults for the other arguments."""
    return decode(norm, beam_size)


def assert_each_is_a_beam_of_its_size(outputs, sizes, n_best, search):
    """Checks that the outputs are exactly those of a beam of that size."""
    tokens, scores = outputs
    assert (tokens.shape, scores.shape) == ((5, n_best, LIMIT), (5, n_best))
    for b, size in enumerate(sizes):
        count = min(n_best, size)
        expected, expected_scores = search(size)
        np.testing.assert_array_equal(tokens[b, :count], expected[b, :count])
        np.testing.assert_allclose(scores[b, :count], expected_scores[b, :count], **SCORES)
        assert np.all(tokens[b, count:] == 0) and np.all(scores[b, count:] == -1e9)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "norm, n_best",
    [
        pytest.param("post", 2, marks=pytest.mark.slow),
        pytest.param("post", 1, marks=pytest.mark.slow),
    ],
)
def test_each_sentence_gets_the_outputs_of_a_beam_of_its_size(norm, n_best):
    for sizes in SIZES:
        outputs = decode(norm, WIDTH, n_best=n_best, sizes=sizes)
        search = functools.partial(searched, norm)
        assert_each_is_a_beam_of_its_size(outputs, sizes, n_best, search)
    assert not np.array_equal(searched(norm, 1)[1][:, 0], searched(norm, WIDTH)[1][:, 0])


@pytest.mark.slow
def test_a_beam_of_one_among_others_is_greedy_search():
    expected, expected_scores = by_greedy(talkative(), sources(), LIMIT)
    tokens, scores = decode("pre", WIDTH, sizes=[1] * 5, normalization="none")
    np.testing.assert_array_equal(tokens[:, 0], expected)
    np.testing.assert_allclose(scores[:, 0], expected_scores, **SCORES)
    assert any(EOS not in row for row in tokens[:, 0]) and any(EOS in row for row in tokens[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"normalization": "average", "early_stopping": False},
        {"constraints": Constraints(banned=np.arange(19) == 7, no_repeat_ngram=2)},
    ],
)
def test_it_combines_with_any_other_option(options):
    outputs = decode("post", WIDTH, n_best=3, sizes=SIZES[0], **options)
    search = functools.cache(functools.partial(decode, "post", **options))
    assert_each_is_a_beam_of_its_size(outputs, SIZES[0], 3, search)


@pytest.mark.slow
def test_token_scores_and_alignments_are_those_of_a_beam_of_that_size():
    options = {"token_scores": True, "alignment": (-1, None), "max_length": LIMIT}
    outputs = by_beam(talkative(), sources(), WIDTH, 3, sizes=[2] * 5, **options)
    alone = by_beam(talkative(), sources(), 2, 2, **options)
    for name in ("tokens", "token_scores", "alignment"):
        np.testing.assert_allclose(outputs[name][:, :2], alone[name], **SCORES)
        assert np.all(outputs[name][:, 2:].numpy() == 0)


@pytest.mark.long
@pytest.mark.slow
def test_every_sentence_can_have_its_own_penalty_and_length():
    """In a compiled graph, and eagerly for each sentence alone."""
    penalties = np.array([0.0, 0.6, 3.0, 1.5, 0.3], "float32")
    limits = np.array([9, 3, 5, 1, 9], "int32")
    model = talkative()

    @tf.function(jit_compile=True)
    def search(source, sizes, penalties, limits):
        options = {"cache_length": LIMIT, "cache_stages": ()}
        return by_beam(
            model, source, WIDTH, 2, penalties, max_length=limits, sizes=sizes, **options
        )

    tokens, scores = search(*map(tf.constant, (sources(), SIZES[0], penalties, limits)))
    for b, (size, penalty, limit) in enumerate(zip(SIZES[0], penalties, limits, strict=True)):
        options = {"n_best": min(2, size), "length_penalty": float(penalty), "max_length": limit}
        alone, score = by_beam(model, sources()[b : b + 1], size, **options)
        np.testing.assert_array_equal(tokens[b, : min(2, size), :limit], alone[0])
        assert np.all(tokens[b, :, limit:] == 0)
        np.testing.assert_allclose(scores[b, : min(2, size)], score[0], **SCORES)
