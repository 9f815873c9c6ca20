"""Scores of given translations equal those of the model, of the searches and of padded batches."""

import numpy as np
import pytest
import reference
import tensorflow as tf
from searching import by_beam, by_greedy
from support import sentences, weights_of
from uncertain_models import BOS, EOS, PAD, sources, talkative, unpadded

from keras_transformer.decoding import score

LIMIT = 9
SCORES = {"rtol": 0, "atol": 1e-4}


def targets():
    target = sentences([4, 7, 1, 3, 6], width=8, seed=4)
    for row in target:
        row[np.count_nonzero(row)] = EOS
    return target


def test_scores_are_those_of_the_reference():
    """The paper in float64, one sentence and one token at a time."""
    model, source, target = talkative(), sources(), targets()
    gains, sums = score(model, source, target)
    assert (gains.dtype, gains.shape, sums.dtype, sums.shape) == (
        "float32",
        (5, 8),
        "float32",
        (5,),
    )
    for b, row in enumerate(target):
        words = unpadded(row)
        inputs = np.array([[BOS, *words[:-1]]])
        logits = reference.transformer(weights_of(model), model.config, source[b : b + 1], inputs)
        rows = reference.log_probabilities(logits)[0]
        expected = [rows[place][word] for place, word in enumerate(words)]
        np.testing.assert_allclose(gains[b, : len(words)], expected, **SCORES)
        assert np.all(gains[b, len(words) :] == 0)
        np.testing.assert_allclose(sums[b], sum(expected), **SCORES)


def test_a_search_output_scores_as_in_its_search(norm="post"):
    """Includes sentences that end and sentences that the limit truncates."""
    model, source = talkative(norm), sources()
    tokens, scores = by_greedy(model, source, LIMIT)
    assert np.any(tokens[:, -1] != PAD) and np.any(tokens[:, -1] == PAD)
    np.testing.assert_allclose(score(model, source, tokens)[1], scores, **SCORES)
    tokens, scores = by_beam(model, source, 3, 3, normalization="none", max_length=LIMIT)
    for place in range(3):
        totals = score(model, source, tokens[:, place])[1]
        np.testing.assert_allclose(totals, scores[:, place], **SCORES)


def test_neighbours_and_padding_change_nothing():
    model, source, target = talkative(), sources(), targets()
    gains, sums = score(model, source, target)
    wider = np.pad(source, [(0, 0), (0, 3)])[::-1], np.pad(target, [(0, 0), (0, 5)])[::-1]
    backwards, backward_sums = score(model, *wider)
    np.testing.assert_allclose(backwards[::-1][:, :8], gains, **SCORES)
    assert np.all(backwards[:, 8:] == 0)
    np.testing.assert_allclose(backward_sums[::-1], sums, **SCORES)


@pytest.mark.slow
def test_compiled_is_eager(jit_compile=True):
    model, source, target = talkative(), tf.constant(sources()), tf.constant(targets())
    compiled = tf.function(lambda *both: score(model, *both), jit_compile=jit_compile)
    for values, expected in zip(
        compiled(source, target), score(model, source, target), strict=True
    ):
        np.testing.assert_allclose(values, expected, **SCORES)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"], indirect=["policy"])
def test_dropout_is_off_and_half_precision_scores_in_float32(policy, small_model):
    source, target = sources(), targets()
    gains, sums = score(small_model(dropout=0.4), source, target)
    assert (gains.dtype, sums.dtype) == ("float32", "float32")
    np.testing.assert_array_equal(gains, score(small_model(), source, target)[0])
