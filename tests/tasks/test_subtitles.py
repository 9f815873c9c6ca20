"""Subtitles against readers of SubRip and WebVTT that follow the formats line by line."""

import html
import re

import pytest

from keras_transformer.tasks.speech_recognition.segments import Segment
from keras_transformer.tasks.speech_recognition.subtitles import subrip, webvtt

TIME = r"(\d{2,}):([0-5]\d):([0-5]\d)%s(\d{3})"


def seconds(parts):
    hours, minutes, rest, thousandths = map(int, parts)
    return 3600 * hours + 60 * minutes + rest + thousandths / 1000


def cues_of(block, mark):
    """The times and the text of a block, whose first line has the times."""
    times, *lines = block
    found = re.fullmatch(f"{TIME % mark} --> {TIME % mark}", times)
    assert found and lines and all(lines), block
    assert not any("-->" in line for line in lines)
    start, end = seconds(found.groups()[:4]), seconds(found.groups()[4:])
    assert start < end
    return start, end, "\n".join(lines)


def blocks_of(text):
    assert not text or text.endswith("\n") and not text.endswith("\n\n")
    return [block.rstrip("\n").split("\n") for block in text.split("\n\n") if block]


def read_subrip(text):
    blocks = blocks_of(text)
    assert [block[0] for block in blocks] == [str(n + 1) for n in range(len(blocks))]
    return [cues_of(block[1:], ",") for block in blocks]


def read_webvtt(text):
    (header, *rest), *blocks = blocks_of(text)
    assert (header, rest) == ("WEBVTT", [])
    cues = []
    for block in blocks:
        start, end, content = cues_of(block, r"\.")
        assert not re.search(r"<|>|&(?!amp;|lt;|gt;)", content)
        cues.append((start, end, html.unescape(content)))
    return cues


def test_times_have_hours_minutes_seconds_and_milliseconds():
    times = [0.0, 0.01, 59.99, 60.0, 3599.99, 3600.0, 36_000.5, 360_000.0, 360_061.23]
    segments = [
        Segment(start, end, f"number {n}")
        for n, (start, end) in enumerate(zip(times[:-1], times[1:], strict=True))
    ]
    expected = [(one.start, one.end, one.text) for one in segments]
    assert read_subrip(subrip(segments)) == expected
    assert read_webvtt(webvtt(segments)) == expected


HOSTILE = {  # texts, and what SubRip shows of them
    "a --> b ---> c": "a -> b -> c",
    "1\n00:00:00,000 --> 00:00:01,000\nx": "1 00:00:00,000 -> 00:00:01,000 x",
    "one\n\ntwo\r\n\r\nthree\u2028four\u0085five": "one two three four five",
    "  <b>AT&T</b> &amp; &lt; <v Bob>x  ": "<b>AT&T</b> &amp; &lt; <v Bob>x",
    "NOTE x": "NOTE x",
    "7": "7",
    "über 猫\tж": "über 猫 ж",
}


def test_no_text_ends_a_subtitle_or_becomes_markup():
    segments = [Segment(n, n + 0.5, text) for n, text in enumerate(HOSTILE)]
    plain = [" ".join(text.split()) for text in HOSTILE]
    assert [text for *_, text in read_webvtt(webvtt(segments))] == plain
    texts = [text for *_, text in read_subrip(subrip(segments))]
    assert texts == [*HOSTILE.values()]


@pytest.mark.parametrize(("write", "read"), [(subrip, read_subrip), (webvtt, read_webvtt)])
def test_every_subtitle_has_a_text_and_a_duration(write, read):
    texts = ["", "a", "b", " \n", "c", "d", "e"]
    times = [(0, 1), (1.5, 1.5), (1.5, 2), (2, 3), (3, 4), (4, 4), (4, 4.5)]
    segments = [Segment(*pair, text) for pair, text in zip(times, texts, strict=True)]
    expected = [(1.5, 1.501, "a"), (1.5, 2, "b"), (3, 4, "c d"), (4, 4.5, "e")]
    assert read(write(segments)) == expected


def test_a_recording_without_segments():
    assert subrip([]) == subrip([Segment(0.0, 30.0, "")]) == ""
    assert webvtt([]) == webvtt([Segment(0.0, 30.0, "")]) == "WEBVTT\n"
