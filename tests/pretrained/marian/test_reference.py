"""The references in `marian_reference.py` against outputs of Marian and Bergamot themselves."""

import pytest
from marian_reference import Marian, SaturatingMarian

from keras_transformer.pretrained.files.marian.binary import read_bin

SPREAD = 0.6  # `normalize` of the beam


def ids(student, text):
    return [*student.vocabulary.encode(text), student.vocabulary.eos_id()]


def pieces(student, tokens):
    return " ".join(student.vocabulary.id_to_piece(token) for token in tokens if token)


def is_marians_greedy_search(student, count):
    marian = Marian(student.weights, student.settings)
    for text, expected, score in student.greedy[:count]:
        tokens, total = marian.greedy(ids(student, text))
        assert pieces(student, tokens) == expected
        assert abs(total - float(score)) / len(tokens) < 1e-5


def test_greedy_search_equals_marians(student):
    is_marians_greedy_search(student, 40)


@pytest.mark.slow
def test_greedy_search_equals_marians_for_all_sentences(student):
    assert len(student.greedy) == 200
    is_marians_greedy_search(student, 200)


def is_marians_beam(student, count):
    marian = Marian(student.weights, student.settings)
    for first in range(0, 4 * count, 4):
        expected = student.beam[first : first + 4]
        hypotheses = marian.beam(ids(student, expected[0][0]), 4, SPREAD)
        assert [pieces(student, tokens) for tokens, *_ in hypotheses] == [
            row[1] for row in expected
        ]
        for (tokens, total, normalized), (*_, score, ranked) in zip(
            hypotheses, expected, strict=True
        ):
            assert abs(total - float(score)) / len(tokens) < 1e-5
            assert abs(normalized - float(ranked)) < 1e-4


def test_the_beam_equals_marians(student):
    is_marians_beam(student, 6)


@pytest.mark.slow
@pytest.mark.long
def test_the_beam_equals_marians_for_all_sentences(student):
    is_marians_beam(student, 200)


def agreement(student, count):
    """Counts the sentences for which the emulator and the browsers' engine agree."""
    arrays = read_bin(student.folder / "model.intgemm.alphas.bin")
    marian, same = SaturatingMarian(arrays, student.settings), 0
    for (text, *_), expected in zip(student.greedy[:count], student.int8, strict=False):
        source = ids(student, text)
        tokens, _ = marian.greedy(source, 2 * len(source))
        same += student.vocabulary.decode([token for token in tokens if token]) == expected
    return same


def test_the_emulator_equals_the_browsers_engine(student):
    assert agreement(student, 8) == 8


@pytest.mark.long
@pytest.mark.slow
def test_the_emulator_equals_the_browsers_engine_for_98_percent_of_all_sentences(student):
    same = agreement(student, 200)
    assert same >= 196
