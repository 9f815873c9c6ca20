"""Ways to write a text in tokens, by dynamic programming, equal those of a search of all ways."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.text.segmentations import Segmentations

PIECES = ["", "a", "b", "ab", "ba", "aab", "é", "bé", "abab", "\u2581", "\u2581a", "</s>"]
PAD = 0


def all_ways(text):
    """Every way to write a text, by recursion over its first token."""
    if not text:
        return [[]]
    return [
        [number, *rest]
        for number, piece in enumerate(PIECES)
        if piece and text.startswith(piece)
        for rest in all_ways(text[len(piece) :])
    ]


def best(text, most):
    """The first ways by number of tokens, then by the lengths of the tokens."""
    ways = all_ways(text) if text else []
    return sorted(ways, key=lambda way: (len(way), [-len(PIECES[one]) for one in way]))[:most]


def rows(ways):
    return [row[row != PAD].tolist() for row in ways.numpy() if np.any(row != PAD)]


@pytest.mark.parametrize("most", [1, 3, 7])
def test_the_ways_are_the_best_of_all(most):
    texts = ["abab", "aababéba", "b", "", "\u2581aab", "xab", "abx", "é" * 13, "ab" * 5]
    find = Segmentations(PIECES, PAD, most)
    together = find(tf.constant(texts))
    assert together.shape == (len(texts), most, 13)
    assert len(all_ways("ab" * 5)) > 20
    for text, ways in zip(texts, together, strict=True):
        assert rows(ways) == best(text, most) == rows(find(tf.constant([text]))[0]), text


def test_there_may_be_no_text():
    assert Segmentations(PIECES, PAD, 3)(tf.zeros([0], tf.string)).shape[0] == 0
    traced = tf.function(Segmentations(PIECES, PAD, 3), autograph=False)
    graph = traced.get_concrete_function(tf.TensorSpec([None], tf.string))
    assert rows(graph(tf.constant(["abab"]))[0]) == best("abab", 3)


def test_strings_need_no_axis_for_each_character_of_a_token():
    """With one, a phrase of 1,000 characters and a token of 100 would need 10 million strings."""
    traced = tf.function(Segmentations(PIECES, PAD, 3), autograph=False)
    graph = traced.get_concrete_function(tf.TensorSpec([None], tf.string)).graph
    outputs = [output for op in graph.get_operations() for output in op.outputs]
    ranks = [output.shape.rank for output in outputs if output.dtype == tf.string]
    assert None not in ranks and max(ranks) < 4
