"""Subtitles of a recording as files of SubRip, WebVTT and JSON."""

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator

from keras_transformer.options import SUBTITLES
from keras_transformer.tasks.speech_recognition.segments import Segment

ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}  # of WebVTT, in whose texts "-->" is an error
ARROW = re.compile("--+>")
BRIEFEST = 0.001  # seconds: WebVTT requires that the end comes after the start


def subrip(segments: Iterable[Segment]) -> str:
    """Returns the content of a `.srt` file: numbered texts with their times.

    The format has no escapes: `-->`, by which programs find the times, becomes `->` in a text.

    Args:
        segments: The segments of a `Transcript`. Those without text are left out.

    Example:
        >>> from keras_transformer.options import SUBTITLES
        >>> from keras_transformer.tasks.speech_recognition.segments import Segment
        >>> from keras_transformer.tasks.speech_recognition.subtitles import subrip
        >>> print(subrip([Segment(0.0, 2.5, "Good morning.")]))
        1
        00:00:00,000 --> 00:00:02,500
        Good morning.
        <BLANKLINE>
    """
    return "\n".join(
        f"{number}\n{_time(cue.start, ',')} --> {_time(cue.end, ',')}\n"
        f"{ARROW.sub('->', cue.text)}\n"
        for number, cue in enumerate(_cues(segments), start=1)
    )


def webvtt(segments: Iterable[Segment]) -> str:
    """Returns the content of a `.vtt` file, with the characters `&`, `<` and `>` as references.

    Args:
        segments: See `subrip`.

    Reference: WebVTT, https://www.w3.org/TR/webvtt1/, section 4.
    """
    escapes = str.maketrans(ESCAPES)
    cues = (
        f"{_time(cue.start, '.')} --> {_time(cue.end, '.')}\n{cue.text.translate(escapes)}\n"
        for cue in _cues(segments)
    )
    return "\n".join(["WEBVTT\n", *cues])


def as_json(segments: Iterable[Segment]) -> str:
    """Returns a list in JSON of objects with `start` and `end` in seconds, and `text`.

    Words also have their `probability`, with four decimals.

    Args:
        segments: See `subrip`.
    """
    rows = [dataclasses.asdict(one) for one in segments if one.text.strip()]
    for row in rows:
        if "probability" in row:
            row["probability"] = round(row["probability"], 4)
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


FORMATS = dict(zip(SUBTITLES, (subrip, webvtt, as_json), strict=True))


def _cues(segments) -> Iterator[Segment]:
    """Yields segments with a text of one line and a duration.

    The text of a segment without a duration, which nobody could read, follows that of the segment
    before it.
    """
    earlier = None
    for segment in segments:
        text = " ".join(segment.text.split())  # a line end or an empty line would end the text
        if not text:
            continue
        if earlier is not None and segment.end <= segment.start:
            earlier = dataclasses.replace(earlier, text=f"{earlier.text} {text}")
            continue
        if earlier is not None:
            yield earlier
        end = max(segment.end, segment.start + BRIEFEST)
        earlier = Segment(segment.start, end, text)
    if earlier is not None:
        yield earlier


def _time(seconds, mark):
    """Returns hours, minutes, seconds and milliseconds, such as `01:02:03.400`."""
    rest, thousandths = divmod(round(1000 * seconds), 1000)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{mark}{thousandths:03}"
