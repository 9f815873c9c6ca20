"""`predict --subtitles` with a search that knows its answers."""

import io
import json

import click
import pytest

from keras_transformer.cli.subtitles import write_subtitles
from keras_transformer.opening.lines import LineFormat
from keras_transformer.tasks.speech_recognition.segments import Segment
from keras_transformer.tasks.speech_recognition.transcript import Transcript


def transcript(text, truncated=False):
    words = tuple(Segment(0.5, 0.75, word) for word in (text[:1], text[1:]))
    return Transcript(text, -1.0, 3, truncated, segments=(Segment(0.5, 2.0, text),), words=words)


def search(numbers, paths, batch_size, progress):
    """A search whose transcripts are the paths; those of missing files are errors."""
    return [
        ValueError(f"{path}: does not exist.")
        if "missing" in path
        else [transcript(path, truncated="long" in path)]
        for path in paths
    ]


def subtitles(data, place=None, suffix="srt", **how):
    output, warnings = io.BytesIO(), []
    write_subtitles(search, io.BytesIO(data), place, output, warnings.append, suffix, **how)
    return output.getvalue().decode(), warnings


def srt_of(text):
    return f"1\n00:00:00,500 --> 00:00:02,000\n{text}\n"


def test_one_recording_on_stdout_or_in_a_file(tmp_path):
    assert subtitles(b"a.wav\n") == (srt_of("a.wav"), [])
    vtt = "WEBVTT\n\n00:00:00.500 --> 00:00:02.000\nx/long &amp; b.flac\n"
    cut = ["line 1: longer than the model's limit; its end was cut off"]
    assert subtitles(b"x/long & b.flac", suffix="vtt") == (vtt, cut)
    assert subtitles(b"a.wav\n\n", tmp_path / "b.srt") == ("", [])
    assert (tmp_path / "b.srt").read_text("utf-8") == srt_of("a.wav")


def test_json_and_words():
    content, _ = subtitles(b"\xc3\xa4.wav\n", suffix="json")
    assert json.loads(content) == [{"start": 0.5, "end": 2.0, "text": "ä.wav"}]
    content, _ = subtitles(b"a.wav\n", words=True)
    times = "00:00:00,500 --> 00:00:00,750"
    assert content == f"1\n{times}\na\n\n2\n{times}\n.wav\n"
    lines = LineFormat(timestamps=True, words=True).lines(3, [transcript("a.wav")])
    assert lines == ["3\t0.50\t0.75\ta", "3\t0.50\t0.75\t.wav"]


@pytest.mark.parametrize("batch_size", [1, 64])
def test_several_recordings_have_files_in_a_folder(batch_size, tmp_path):
    data = "\ufeffx/ä.wav\r\n\nmissing.wav\n.hidden.wav\ny/b.c.flac".encode()
    output, warnings = subtitles(data, tmp_path, batch_size=batch_size)
    assert not output
    assert warnings == ["line 3: missing.wav: does not exist; without subtitles"]
    files = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    names = {"ä.srt": "x/ä.wav", ".hidden.srt": ".hidden.wav", "b.c.srt": "y/b.c.flac"}
    assert files == {name: srt_of(text) for name, text in names.items()}


@pytest.mark.parametrize("place", ["", "b.srt"])
def test_a_recording_without_subtitles_leaves_no_file_of_an_earlier_run(place, tmp_path):
    """Such a file would look like a result; other files, also those of empty lines, stay."""
    for name in (".srt", "a.srt", "missing.srt", "missing.vtt", "b.srt"):
        (tmp_path / name).write_text("of an earlier run")
    data = b"missing.wav\n\n" if place else b"\nx/missing.wav\nb.wav\n"
    _, warnings = subtitles(data, tmp_path / place)
    gone, line = (tmp_path / "b.srt", 1) if place else (tmp_path / "missing.srt", 2)
    assert warnings[1:] == [f"line {line}: removed {gone}, which an earlier run wrote"]
    assert not gone.exists() and len([*tmp_path.iterdir()]) == 4
    if not place:
        assert (tmp_path / "b.srt").read_text("utf-8") == srt_of("b.wav")


def test_a_range_of_lines_has_the_files_of_its_own_recordings(tmp_path):
    subtitles(b"a.wav\nb.wav\nc.wav\nd.wav\n", tmp_path, bounds=(1, 3))
    files = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert files == {"b.srt": srt_of("b.wav"), "c.srt": srt_of("c.wav")}


def test_recordings_that_cannot_be_told_apart_are_refused(tmp_path):
    with pytest.raises(click.UsageError, match=r"b\.srt would have the subtitles of two recording"):
        subtitles(b"a.wav\nx/b.wav\ny/b.flac\n", tmp_path)
    for place in (None, tmp_path / "all.srt"):
        with pytest.raises(click.UsageError, match="srt of 2 recordings needs --output with a fol"):
            subtitles(b"a.wav\nb.wav\n", place)
    with pytest.raises(click.UsageError, match=r"a\.srt .* of lines 2 and 4"):  # another shard's
        subtitles(b"b.wav\nx/a.wav\nc.wav\ny/a.wav\n", tmp_path, bounds=(2, 4))
    assert not [*tmp_path.iterdir()]


def test_lines_of_spaces_are_empty(tmp_path):
    subtitles(b" \na.wav\n \n", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.srt"]
    assert subtitles(b" \na.wav\n\t\n") == (srt_of("a.wav"), [])


def test_a_bad_recording_is_an_error_if_strict(tmp_path):
    with pytest.raises(ValueError, match=r"line 2: missing\.wav: does not exist"):
        subtitles(b"a.wav\nmissing.wav\nb.wav\n", tmp_path, strict=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.srt"]
