"""Times of words: dynamic time warping of attention weights, against plain loops."""

import dataclasses

import numpy as np
import pytest
from pipelines import speech_recognizer

from keras_transformer.config.rules import OutputRules
from keras_transformer.tasks.speech_recognition.alignment import begins_of, median_filter, warped


def least_cost(costs):
    """The least cost of a path to the last cell, and the path, by steps back from every cell."""
    count, width = costs.shape
    known = {}
    for row in range(count):
        for column in range(width):
            before = [
                known[cell][0]
                for cell in ((row - 1, column - 1), (row - 1, column), (row, column - 1))
                if cell in known
            ]
            known[row, column] = (costs[row, column] + min(before, default=0.0),)
    return known[count - 1, width - 1][0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 7), (7, 3), (6, 6)])
def test_a_path_has_the_least_cost(shape):
    costs = np.random.default_rng(sum(shape)).normal(size=shape)
    rows, columns = warped(costs)
    assert (rows[0], columns[0]) == (0, 0)
    assert (rows[-1], columns[-1]) == (shape[0] - 1, shape[1] - 1)
    steps = {*zip(np.diff(rows).tolist(), np.diff(columns).tolist(), strict=True)}
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    total = sum(costs[row, column] for row, column in zip(rows, columns, strict=True))
    assert total == pytest.approx(least_cost(costs))


@pytest.mark.parametrize("size", [2, 3, 4, 11])
def test_a_median_filter_mirrors_the_ends(size):
    values = np.random.default_rng(size).normal(size=(2, size))
    filtered = median_filter(values, 7)
    for row, column in np.ndindex(2, size):
        expected = values[row, column]
        if size > 3:
            places = [abs(column + offset) for offset in range(-3, 4)]
            places = [2 * (size - 1) - place if place >= size else place for place in places]
            expected = sorted(values[row, place] for place in places)[3]
        assert filtered[row, column] == expected


def test_a_token_begins_where_the_attention_moves_to_it():
    """Two heads, a prompt of two tokens, and a text of four with positions of their own."""
    rng, begins = np.random.default_rng(0), [0, 9, 20, 34, 50]
    weights = 0.01 * rng.random((2, 7, 60))  # prompt, tokens that predict the text, end
    for number, (begin, end) in enumerate(zip(begins, [*begins[1:], 60], strict=True)):
        weights[:, 1 + number, begin:end] += 1.0
    weights[:, 0, :] += 0.1
    found = begins_of(weights, 1)
    np.testing.assert_allclose(found, begins, atol=1)
    np.testing.assert_array_equal(begins_of(3 * weights, 1), found)  # rows need not sum to 1


def test_words_that_are_refused():
    plain = speech_recognizer()
    with pytest.raises(ValueError, match="`words` must be False for a model without `alignment_h"):
        type(plain)(plain.model, plain.tokenizers, words=True)
    with pytest.raises(ValueError, match="`alignment_heads` must be pairs of one of 1 layers and"):
        dataclasses.replace(plain.model.config, alignment_heads=((7, 0),))
    assert OutputRules(alignment_heads=[[1, 0]]).alignment_heads == ((1, 0),)
