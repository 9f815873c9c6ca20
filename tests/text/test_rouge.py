"""ROUGE against its definition in loops, and against rouge-score's own tokenizer."""

import re
import sys

import numpy as np
import pytest

from keras_transformer.installation import install_hint
from keras_transformer.tasks.summarization.metrics import KINDS, rouge

pytest.importorskip("rouge_score")
WORDS = ["a", "cat", "ran", "dog", "sat", "7", "ab"]  # each word is its own stem


def pairs_of(words):
    return list(zip(words, words[1:], strict=False))


def f1(common, ours, theirs):
    return 2 * common / (ours + theirs) if common else 0.0


def overlap(ours, theirs):
    left, common = list(theirs), 0
    for item in ours:
        if item in left:
            left.remove(item)
            common += 1
    return f1(common, len(ours), len(theirs))


def longest_common_subsequence(ours, theirs):
    if not ours or not theirs:
        return 0
    if ours[-1] == theirs[-1]:
        return 1 + longest_common_subsequence(ours[:-1], theirs[:-1])
    return max(
        longest_common_subsequence(ours[:-1], theirs), longest_common_subsequence(ours, theirs[:-1])
    )


def reference(ours, theirs):
    lengths = len(ours), len(theirs)
    return (
        overlap(ours, theirs),
        overlap(pairs_of(ours), pairs_of(theirs)),
        f1(longest_common_subsequence(ours, theirs), *lengths),
    )


def drawn(count, seed):
    rng = np.random.default_rng(seed)
    return [rng.choice(WORDS, rng.integers(1, 7)).tolist() for _ in range(count)]


def test_the_means_follow_the_definition():
    ours, theirs = drawn(23, 1), drawn(23, 2)
    expected = np.mean([reference(*pair) for pair in zip(ours, theirs, strict=True)], axis=0)
    figures = rouge([" ".join(words) for words in ours], [", ".join(words) for words in theirs])
    np.testing.assert_allclose([figures[kind] for kind in KINDS], expected, atol=1e-12)
    assert 0 < figures["rouge2"] < figures["rougeL"] < figures["rouge1"] < 1
    assert figures["summaries"] == 23 and "rouge-score:" in figures["rouge_signature"]


def test_ascii_text_is_split_as_by_rouge_score():
    from rouge_score.tokenizers import DefaultTokenizer

    from keras_transformer.tasks.summarization.metrics import load_scorer

    rng = np.random.default_rng(3)
    characters = [chr(code) for code in range(32, 127)] + list("aeinrst   ing ed s ")
    ours, theirs = load_scorer()._tokenizer, DefaultTokenizer(use_stemmer=True)
    for _ in range(300):
        text = "".join(rng.choice(characters, 40))
        assert ours.tokenize(text) == theirs.tokenize(text)
    assert ours.tokenize("Running cats_and dogs' 12.5") == ["run", "cat", "and", "dog", "12", "5"]


def test_other_scripts_are_split_into_words():
    """rouge-score's own tokenizer finds no words, so even a perfect summary scores 0."""
    text = "Übermut tut selten gut; Ένα δύο"
    figures = rouge([text, text], [text, "ένα"])
    assert figures["rouge1"] == pytest.approx((1 + 2 * (1 / 6) / (1 / 6 + 1)) / 2)


def test_wrong_lists_are_reported_in_one_line():
    with pytest.raises(ValueError, match="one text for each summary. Received: 1 summaries, 2 ref"):
        rouge(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="`references` must hold at least one text"):
        rouge([], [])


def test_without_the_package_the_message_gives_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(ValueError, match=re.escape(install_hint("rouge"))):
        rouge(["a"], ["a"])
