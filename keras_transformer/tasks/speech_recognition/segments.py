"""Segments of transcripts: texts between two timestamps."""

import dataclasses
import math
from collections.abc import Sequence

from keras_transformer.tasks.speech_recognition.audio import windows


@dataclasses.dataclass(frozen=True)
class Segment:
    """A part of a transcript with its time.

    Args:
        start, end: Time in the recording, in seconds.
        text: The text.
    """

    start: float
    end: float
    text: str


@dataclasses.dataclass(frozen=True)
class Word(Segment):
    """A word of a transcript with its time.

    Args:
        start, end, text: See `Segment`.
        probability: Mean probability of its tokens, from 0 to 1, among all tokens of text.
    """

    probability: float = 0.0


class _Word(str):
    """A word that knows its segment."""

    segment: Segment


def joined_segments(parts: Sequence, begins: Sequence) -> tuple[Segment, ...]:
    """Returns the segments of a recording from those of its windows.

    The words of the segments are merged as those of transcripts are, see `windows.merge`. Where the
    remaining segments of two windows overlap, the middle of the overlap ends the earlier one.
    Segments without text keep the time in which no window has words.

    Args:
        parts: Segments of each window, in order.
        begins: Time of the beginning of each window, in seconds.
    """
    moved = [
        [_moved(segment, begin) for segment in part]
        for part, begin in zip(parts, begins, strict=True)
    ]
    joined = []
    for word in windows.merge([_words(part) for part in moved]):
        if joined and joined[-1][0] is word.segment:
            joined[-1][1].append(word)
        else:
            joined.append((word.segment, [word]))
    texts = [dataclasses.replace(one, text="".join(words).strip()) for one, words in joined]
    spoken = [*_in_order(texts)]
    silent = [one for part in moved for one in part if not one.text.strip()]
    both = [*spoken, *_outside(spoken, silent)]
    return tuple(sorted(both, key=lambda one: (one.start, one.end)))


def _moved(segment, seconds):
    times = (round(time + seconds, 2) for time in (segment.start, segment.end))
    return Segment(*times, segment.text)


def _words(segments):
    """Returns the words of a window, a list of `_Word`s."""
    words = []
    for segment in segments:
        for text in windows.words_of(segment.text):
            words.append(_Word(text))
            words[-1].segment = segment
    return words


def _outside(spoken, silent):
    """Yields the parts of silent segments that overlap neither others nor each other."""
    ends = [0.0, *(segment.end for segment in spoken)]
    gaps = [*zip(ends, [*(segment.start for segment in spoken), math.inf], strict=True)]
    last = 0.0
    for segment in silent:
        for begin, end in gaps:
            begin, end = max(begin, segment.start, last), min(end, segment.end)
            if begin < end:
                yield Segment(begin, end, "")
                last = end


def _in_order(segments):
    """Yields segments that do not overlap, whose starts and ends never decrease."""
    earlier = None
    for segment in segments:
        if earlier is not None:
            if segment.start < earlier.end:
                earlier, segment = _apart(earlier, segment)
            yield earlier
        earlier = segment
    if earlier is not None:
        yield earlier


def _apart(earlier, later):
    """Returns two segments, of which the second one begins where the first one ends."""
    begin, end = max(earlier.start, later.start), min(earlier.end, later.end)
    seam = round(max(earlier.start, (begin + end) / 2), 2)
    end = max(later.end, seam)
    return dataclasses.replace(earlier, end=seam), dataclasses.replace(later, start=seam, end=end)
