"""Nearest neighbours against a plain loop, and what is refused."""

import math

import numpy as np
import pytest

from keras_transformer.pipelines import NearestNeighbors

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(40, 5))
LABELS = [f"label {number % 3}" for number in range(40)]


def voted(vector, examples, labels, count, temperature):
    """The share of each label in the votes of the nearest examples, in plain loops."""
    cosines = []
    for number, example in enumerate(examples):
        product = sum(a * b for a, b in zip(vector, example, strict=True))
        cosines.append(
            (product / math.dist(vector, 0 * vector) / math.dist(example, 0 * example), number)
        )
    cosines.sort(key=lambda pair: (-pair[0], pair[1]))
    votes = dict.fromkeys(sorted({*labels}), 0.0)
    for cosine, number in cosines[:count]:
        votes[labels[number]] += math.exp(cosine / temperature)
    return [vote / sum(votes.values()) for vote in votes.values()]


@pytest.mark.parametrize(("count", "temperature"), [(1, 0.07), (20, 0.07), (99, 0.5)])
def test_votes(count, temperature):
    nearest = NearestNeighbors(VECTORS, LABELS, count, temperature)
    inputs = 3 * RNG.normal(size=(7, 5))
    for vector, result in zip(inputs, nearest.classify(inputs), strict=True):
        expected = voted(vector, VECTORS, LABELS, count, temperature)
        np.testing.assert_allclose(result.probabilities, expected, rtol=0, atol=1e-5)
        assert result.label == nearest.labels[int(np.argmax(expected))]
        assert result.probability == pytest.approx(max(expected), abs=1e-5)


def test_examples_are_classified_by_the_others():
    results = NearestNeighbors(VECTORS, LABELS, 3).classify_examples()
    for number, result in enumerate(results):
        others = [n for n in range(40) if n != number]
        labels = [LABELS[n] for n in others]
        expected = voted(VECTORS[number], VECTORS[others], labels, 3, 0.07)
        np.testing.assert_allclose(result.probabilities, expected, rtol=0, atol=1e-5)


def test_two_examples_vote_for_each_other():
    results = NearestNeighbors(VECTORS[:2], ["a", "b"]).classify_examples()
    assert [result.label for result in results] == ["b", "a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((VECTORS, LABELS[1:]), "`labels` must have a label for each .* 39 labels, 40 vectors"),
        ((VECTORS[:0], []), "of which there is at least one. Received: 0 labels"),
        ((VECTORS[0], LABELS), r"`vectors` must be finite numbers \[N, D\]"),
        ((VECTORS * np.nan, LABELS), r"`vectors` must be finite numbers"),
        ((VECTORS, LABELS, 0), "`neighbors` must be at least 1"),
        ((VECTORS, LABELS, 1, 0.0), "`temperature` must be above 0"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        NearestNeighbors(*arguments)


def test_other_vectors_are_refused():
    nearest = NearestNeighbors(VECTORS, LABELS)
    with pytest.raises(ValueError, match=r"must be finite numbers \[N, 5\].* shape \[2, 4\]"):
        nearest.classify(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="at least two examples"):
        NearestNeighbors(VECTORS[:1], ["a"]).classify_examples()
