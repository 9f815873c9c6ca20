"""Recordings without the parts in which nobody speaks, and the times that they have in the whole.

A `VoiceActivity` finds the speech of a recording. Its intervals are joined to a shorter recording,
which the model reads like any other; the times of its transcript then become those of the whole.
"""

import bisect
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from keras_transformer.tasks.speech_recognition.transcript import Transcript
from keras_transformer.tasks.speech_recognition.voice_activity.intervals import (
    Intervals,
    aligned,
    checked,
)

# From samples `[N]` and their number per second to the intervals of speech, pairs of numbers of
# samples. `SileroVoiceActivity` is one.
VoiceActivity = Callable[[np.ndarray, int], Sequence[Sequence[int]]]
Timed = TypeVar("Timed", bound=Any)


class SpeechOnly:
    """The speech of a recording, and the times that it has there.

    Args:
        intervals: Pairs of the first sample and the sample after the last one, in order.
        sample_rate: Samples per second.
    """

    def __init__(self, intervals: Intervals, sample_rate: int):
        self.intervals, self._rate = intervals, sample_rate
        lengths = [end - begin for begin, end in intervals]
        self._ends = np.cumsum(lengths, dtype=int).tolist()  # in the shorter recording

    @property
    def count(self) -> int:
        """Number of samples of the shorter recording."""
        return self._ends[-1] if self._ends else 0

    def cut(self, samples: np.ndarray) -> np.ndarray:
        """Returns the samples of the intervals; those of the whole recording are not copied."""
        if self.intervals == [(0, len(samples))]:
            return samples
        return np.concatenate([samples[:0], *(samples[begin:end] for begin, end in self.intervals)])

    def start(self, seconds: float) -> float:
        """Returns when something begins that begins at `seconds` in the shorter recording.

        What begins where two intervals meet begins in the later one.
        """
        place = round(seconds * self._rate)
        return self._time(place, bisect.bisect_right(self._ends, place))

    def end(self, seconds: float) -> float:
        """Returns when something ends that ends at `seconds` in the shorter recording.

        What ends where two intervals meet ends in the earlier one.
        """
        place = round(seconds * self._rate)
        return self._time(place, bisect.bisect_left(self._ends, place))

    def _time(self, place, number):
        """Returns the time of a sample of the shorter recording, in an interval, in seconds."""
        number = min(number, len(self.intervals) - 1)
        begin, end = self.intervals[number]
        return round(min(begin + place - self._before(number), end) / self._rate, 2)

    def _before(self, number):
        return self._ends[number - 1] if number else 0

    def moved(self, part: Timed) -> Timed:
        """Returns a `Segment` or a `Window` with its times in the whole recording."""
        start = self.start(part.start)
        end = start if part.end == part.start else self.end(part.end)
        return dataclasses.replace(part, start=start, end=end)

    def moved_word(self, word: Timed) -> Timed:
        """Returns a word with its times in the whole recording, within a single interval.

        The interval is that of the middle of the word: a word does not last through a pause.
        """
        middle = round((word.start + word.end) / 2 * self._rate)
        number = min(bisect.bisect_right(self._ends, middle), len(self.intervals) - 1)
        first, last = self._before(number), self._ends[number]
        places = (min(max(round(t * self._rate), first), last) for t in (word.start, word.end))
        start, end = (self._time(place, number) for place in places)
        return dataclasses.replace(word, start=start, end=end)

    def restored(self, transcript: Transcript) -> Transcript:
        """Returns the transcript of the shorter recording with the times of the whole one."""
        if len(self.intervals) == 1 and self.intervals[0][0] == 0:  # the times are the same
            return transcript
        return dataclasses.replace(
            transcript,
            segments=tuple(map(self.moved, transcript.segments)),
            windows=tuple(map(self.moved, transcript.windows)),
            words=tuple(map(self.moved_word, transcript.words)),
        )


def checked_detector(voice_activity: Any) -> VoiceActivity | None:
    """Returns a detector, or `None` for none.

    Raises:
        TypeError: If it cannot be called.
    """
    if voice_activity is not None and not callable(voice_activity):
        raise TypeError(
            "`voice_activity` must be a function from samples and their rate to intervals, such as "
            f"SileroVoiceActivity(). Received: voice_activity={voice_activity!r}."
        )
    return voice_activity


def speech_of(voice_activity: VoiceActivity, samples: np.ndarray, speech: Any) -> SpeechOnly:
    """Returns the `SpeechOnly` of a recording.

    Intervals begin and end between two timestamps, so that no time is moved within an interval.

    Args:
        voice_activity: The detector.
        samples: Samples `[N]`.
        speech: The `SpeechInput` of the model.

    Raises:
        ValueError: If the detector returns something else than intervals.
    """
    count, step = len(samples), speech.hop_length * speech.conv_stride
    intervals = checked(voice_activity(samples, speech.sample_rate), count)
    intervals = aligned(intervals, step, count)
    if sum(end - begin for begin, end in intervals) < speech.hop_length:  # less than a frame
        intervals = []
    return SpeechOnly(intervals, speech.sample_rate)


def transcripts(
    voice_activity: VoiceActivity,
    codec: Any,
    recordings: list[np.ndarray],
    choices: dict[str, np.ndarray],
    transcribe: Callable[[list, dict], list[Transcript]],
) -> list[Transcript]:
    """Returns a `Transcript` for each recording, of its speech alone.

    A recording without speech has an empty transcript; nothing is computed for it.

    Args:
        voice_activity: The detector.
        codec: The `SpeechCodec`.
        recordings: List of arrays of samples.
        choices: Result of `Choices.rows` for the recordings, or an empty dictionary.
        transcribe: Function from recordings and their choices to their `Transcript`s.
    """
    parts = [speech_of(voice_activity, samples, codec.speech) for samples in recordings]
    spoken = [number for number, part in enumerate(parts) if part.count]
    results = [_empty(codec, choices, number) for number in range(len(recordings))]
    if not spoken:
        return results
    shorter = [parts[number].cut(recordings[number]) for number in spoken]
    rows = {name: values[spoken] for name, values in choices.items()}
    for number, result in zip(spoken, transcribe(shorter, rows), strict=True):
        results[number] = parts[number].restored(result)
    return results


def _empty(codec, choices, number):
    """Returns the `Transcript` of a recording without speech."""
    ids, numbers = codec.choices.languages, choices.get("language")
    own = codec.choices.numbers().get("language") if numbers is None else numbers[number]
    language = next((code for code, token in ids.items() if token == own), None)
    repeated = codec.repeated
    return Transcript("", 0.0, 0, language=language, compression_ratio_threshold=repeated)
