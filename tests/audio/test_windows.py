"""Windows of long recordings, and seams between their transcripts."""

import random

import numpy as np
import pytest

from keras_transformer.tasks.speech_recognition.audio.windows import merge, split, words_of

WORDS = [f"w{number}" for number in range(400)]


@pytest.mark.parametrize("count", [0, 1, 29, 30, 31, 50, 55, 1000])
@pytest.mark.parametrize(("length", "overlap"), [(30, 10), (30, 0), (7, 6)])
def test_windows_cover_a_recording(count, length, overlap):
    samples = np.arange(count)
    windows = split(samples, length, overlap)
    assert (np.unique(np.concatenate(windows)) == samples).all()
    assert all(len(window) == min(length, count) for window in windows)
    for left, right in zip(windows, windows[1:], strict=False):
        assert left[0] < right[0] <= left[-1] + 1 - overlap
        assert right[0] <= left[0] + length - overlap


def test_a_wrong_overlap_is_refused():
    for overlap in (-1, 5):
        with pytest.raises(ValueError, match="`overlap` must be at least 0 and below `length`"):
            split(np.zeros(9), 5, overlap)


def sentences(text):
    return [part.split() for part in text.split("|")]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ("the cat sat on|sat on the mat", "the cat sat on the mat"),
        ("the cat sat on th|t sat on the mat", "the cat sat on the mat"),
        ("the cat sat on a|cat sit on a mat", "the cat sat on a mat"),  # a wrong word inside
        ("a b c d|b c d e|d e f", "a b c d e f"),
        ("a b|c d", "a b c d"),  # nothing in common
        ("a b||b c", "a b b c"),  # an empty window shares nothing with its neighbours
        ("|a b", "a b"),
        ("a b|a b", "a b"),  # the second window lies within the first
        ("a b c|b|b c d", "a b c d"),
        ("Go home.|Home, and stay", "Go Home, and stay"),
        ("one two two two|two two two three", "one two two two three"),
        ("x a b|y x a b c", "x a b c"),  # begins before what the first window recognised
        ("- a|a -", "- a -"),
        ("", ""),
    ],
)
def test_seams(windows, expected):
    assert merge(sentences(windows)) == expected.split()


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (["the cat  sat", " Cat sat on\ta mat "], "the Cat sat on a mat"),
        (["今日はとても良い", "とても良い天気です。"], "今日はとても良い天気です。"),
        (["我們用GPT 模型", "GPT 模型工作"], "我們用GPT 模型工作"),
        (["วันนี้อากาศ", "อากาศดีมาก"], "วันนี้อากาศดีมาก"),
        (["오늘은 날씨가", "날씨가 좋다"], "오늘은 날씨가 좋다"),
        (["one", "two", "三", "四"], "one two三四"),
        (["", " \n"], ""),
    ],
)
def test_texts_of_any_script_are_merged(windows, expected):
    assert "".join(merge(list(map(words_of, windows)))).strip() == expected
    assert all(
        "".join(words_of(text)).strip() == " ".join(text.split()) for text in [*windows, expected]
    )


def heard(rng, words, first, last, garbled):
    """Words of a window; those at its edges may be cut, and are then wrong or missing."""
    words = list(words)
    if garbled and words and not first:
        words[:1] = rng.choice(([], ["#"], ["#", "#"]))
    if garbled and words and not last:
        words[-1:] = rng.choice(([], ["#"]))
    return words


@pytest.mark.parametrize("garbled", [False, True])
def test_the_words_of_overlapping_windows_are_the_whole(garbled):
    """Any text without repetitions, in windows that share at least five words."""
    rng = random.Random(6)
    for _ in range(100):
        text = rng.sample(WORDS, rng.randint(1, 120))
        length, overlap = rng.randint(14, 40), rng.randint(5, 8)
        begins = [0]
        while begins[-1] + length < len(text):
            begins.append(begins[-1] + length - overlap - rng.randint(0, 2))
        windows = [
            heard(rng, text[begin : begin + length], not begin, begin == begins[-1], garbled)
            for begin in begins
        ]
        assert merge(windows) == text


def test_a_seam_keeps_a_beginning_of_the_left_and_an_end_of_the_right():
    rng = random.Random(8)
    for _ in range(200):
        left, right = (rng.choices("abcd", k=rng.randint(0, 9)) for _ in range(2))
        merged = merge([left, right])
        assert any(
            merged == left[:kept] + right[len(right) - len(merged) + kept :]
            for kept in range(max(0, len(merged) - len(right)), len(left) + 1)
        )
        other = merge([left, [f"{word.upper()}." for word in right]])  # case does not matter
        assert [word.strip(".").lower() for word in other] == merged
        assert merge([left, ["x", "y", "z"]]) == [*left, "x", "y", "z"]


def test_a_last_window_may_repeat_nearly_all_of_the_one_before_it():
    text = WORDS[:60]
    for begin in range(31, 59):
        windows = [text[:40], text[30:59], text[begin - 1 :]]
        assert merge(windows) == text, begin
