"""Error rates against the edit distance in plain recursion."""

import functools
import random
import sys

import pytest

from keras_transformer.installation import install_hint
from keras_transformer.tasks.speech_recognition.metrics import (
    character_error_rate,
    error_rates,
    word_error_rate,
)


def distance(left, right):
    @functools.cache
    def of(i, j):
        if not i or not j:
            return i + j
        change = left[i - 1] != right[j - 1]
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + change)

    return of(len(left), len(right))


def test_rates_are_edit_distances_of_the_whole_corpus():
    pytest.importorskip("jiwer")
    rng = random.Random(4)

    def text(most):
        return " ".join(rng.choices(["a", "cat", "é", "Ran.", "ran"], k=rng.randint(0, most)))

    references, hypotheses = [text(6) for _ in range(50)], [text(7) for _ in range(50)]
    pairs = list(zip(hypotheses, references, strict=True))
    words = sum(distance(ours.split(), theirs.split()) for ours, theirs in pairs)
    expected = words / sum(len(text.split()) for text in references)
    assert word_error_rate(hypotheses, references) == pytest.approx(expected)
    characters = sum(distance(ours, theirs) for ours, theirs in pairs)
    expected = characters / sum(map(len, references))
    assert character_error_rate(hypotheses, references) == pytest.approx(expected)


def test_white_space_does_not_count_and_an_empty_reference_does():
    pytest.importorskip("jiwer")
    assert character_error_rate([" a  b\n"], ["a b"]) == 0
    assert word_error_rate(["a b", "c"], ["a b", ""]) == 0.5
    assert word_error_rate(["a b c d"], ["x"]) == 4
    rates = error_rates(["a"], ["b"])
    assert rates["wer"] == rates["cer"] == 1 and "jiwer:" in rates["wer_signature"]


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a"], [], "must have one text for each hypothesis. Received: 1 hypotheses, 0 ref"),
        ([], [], "must have at least one word.* Received: 0 texts"),
        (["a"], [" "], "must have at least one word.* Received: 1 texts without words"),
    ],
)
@pytest.mark.parametrize("rate", [word_error_rate, character_error_rate])
def test_texts_without_a_rate_are_refused(rate, hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        rate(hypotheses, references)


def test_without_jiwer_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jiwer", None)
    with pytest.raises(ValueError, match="need the package jiwer. Install it with: ") as error:
        word_error_rate(["a"], ["a"])
    assert install_hint("speech") in str(error.value)
