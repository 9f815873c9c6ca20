"""Recordings of any length for an export, whose graph reads a single window."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.options import WINDOWS, OptionError
from keras_transformer.tasks.speech_recognition import speech_only
from keras_transformer.tasks.speech_recognition.long_recordings import LongRecordings
from keras_transformer.tasks.speech_recognition.transcript import Transcript

OVERLAP, *OF_RUNS = WINDOWS
TOGETHER = 64  # windows; `LongRecordings` computes fewer of them at a time if they are long


@dataclasses.dataclass(frozen=True)
class AnyLength:
    """Reads recordings in windows that overlap, perhaps without the parts in which nobody speaks.

    Args:
        windows: `"overlap"`, or `None`, which means the same.
        voice_activity: See `SpeechRecognizer`.

    Raises:
        OptionError: If windows depend on each other, for which an export has no inputs.
        TypeError: If the detector cannot be called.
    """

    windows: str | None = None
    voice_activity: speech_only.VoiceActivity | None = None

    def __post_init__(self) -> None:
        if self.windows not in (None, OVERLAP):
            others = " and ".join(map(repr, OF_RUNS))
            raise OptionError(
                "windows",
                f"must be {OVERLAP!r} for an export: {others} need a run. "
                f"Received: windows={self.windows!r}.",
            )
        speech_only.checked_detector(self.voice_activity)

    def __call__(
        self,
        codec: Any,
        recordings: list[np.ndarray],
        transcribe: Callable[[list, dict], list[Transcript]],
    ) -> list[Transcript]:
        """Returns a `Transcript` for each recording.

        Args:
            codec: The `SpeechCodec`.
            recordings: List of arrays of samples.
            transcribe: See `LongRecordings`.
        """
        windows = LongRecordings(codec.speech, codec.choices, transcribe)

        def read(recordings, choices):
            return windows(recordings, choices, TOGETHER)

        if self.voice_activity is None:
            return read(recordings, {})
        return speech_only.transcripts(self.voice_activity, codec, recordings, {}, read)
