"""Recordings of any length for an export, whose graph reads a single window."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.options import WINDOWS, OptionError
from keras_transformer.tasks.signatures import FRAMES
from keras_transformer.tasks.speech_recognition import long_form, speech_only
from keras_transformer.tasks.speech_recognition.attempts import WindowSearch, search_of_export
from keras_transformer.tasks.speech_recognition.fallback import Fallback
from keras_transformer.tasks.speech_recognition.long_recordings import LongRecordings
from keras_transformer.tasks.speech_recognition.transcript import Transcript

OVERLAP, TIMESTAMPS, CONTEXT = WINDOWS
TOGETHER = 64  # windows; `LongRecordings` computes fewer of them at a time if they are long


@dataclasses.dataclass(frozen=True)
class AnyLength:
    """Reads recordings in several windows, perhaps without the parts in which nobody speaks.

    Args:
        windows: See `SpeechRecognizer`. `None`: `"timestamps"` if the export reads frames,
            otherwise `"overlap"`.
        voice_activity: See `SpeechRecognizer`.

    Raises:
        OptionError: If there are no such windows.
        TypeError: If the detector cannot be called.
    """

    windows: str | None = None
    voice_activity: speech_only.VoiceActivity | None = None

    def __post_init__(self) -> None:
        if self.windows not in (None, *WINDOWS):
            known = ", ".join(map(repr, WINDOWS))
            self._refuse(f"must be one of {known}")
        speech_only.checked_detector(self.voice_activity)

    def check(self, codec: Any) -> None:
        """Raises an `OptionError` if an export cannot read such windows, given its codec."""
        if self.windows in (None, OVERLAP):
            return
        if codec.beginnings is None:
            self._refuse(
                f"must be {OVERLAP!r} for an export that reads no frames; those of Whisper do, if "
                "the run is exported again"
            )
        if self.windows == CONTEXT and codec.beginnings.previous is None:
            self._refuse(f"must not be {CONTEXT!r} for a model without `previous_id`")

    def _refuse(self, reason):
        raise OptionError("windows", f"{reason}. Received: windows={self.windows!r}.")

    def __call__(
        self,
        codec: Any,
        recordings: list[np.ndarray],
        transcribe: Callable[[list, dict], list[Transcript]],
        run: Callable[..., dict[str, Any]],
    ) -> list[Transcript]:
        """Returns a `Transcript` for each recording.

        Args:
            codec: The `SpeechCodec`.
            recordings: List of arrays of samples.
            transcribe: See `LongRecordings`.
            run: Function that runs a signature of the export, given its name and inputs by name.
        """
        search = None
        if codec.beginnings is not None:

            def of_frames(**inputs):
                return run(FRAMES, **inputs)

            search = WindowSearch(codec, search_of_export(codec, of_frames))
        windows = self.windows or (OVERLAP if search is None else TIMESTAMPS)
        overlapping = LongRecordings(codec.speech, codec.choices, transcribe)
        plan = long_form.LongForm(codec, windows, overlapping, search, Fallback(codec.silence))

        def read(recordings, choices):
            return plan(recordings, choices, TOGETHER)

        if self.voice_activity is None:
            return read(recordings, {})
        return speech_only.transcripts(self.voice_activity, codec, recordings, {}, read)
