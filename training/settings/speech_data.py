"""Kinds of `[data]` for speech recognition."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keras_transformer.training.settings.array_sections import ArrayData
from keras_transformer.training.settings.fields import Positive

Speed = Annotated[float, Field(ge=0.5, le=2)]
Range = Annotated[list[float], Field(min_length=2, max_length=2)]
Share = Annotated[float, Field(ge=0, le=1)]


class RecordingData(ArrayData):
    """Base of the kinds of `[data]` whose examples are recordings and their transcripts."""

    columns: ClassVar = ("audio", "text")

    time_masks: int = Field(
        0,
        ge=0,
        description="SpecAugment (Park et al., 2019): number of masks over time in a training "
        "example of an epoch.",
    )
    max_time_mask: Positive = Field(
        100,
        description="Largest width of a mask over time, in frames; at most a fifth of a recording.",
    )
    frequency_masks: int = Field(
        0, ge=0, description="SpecAugment: number of masks over frequency in a training example."
    )
    max_frequency_mask: Positive = Field(
        27, description="Largest width of a mask over frequency, in mel filters."
    )


def check_range(section, key, least, most, unit) -> None:
    """Raises a `ValueError` unless two numbers rise and are within limits."""
    low, high = getattr(section, key)
    if not least <= low <= high <= most:
        raise ValueError(
            f"`{key}` must be a smaller and a larger number of {unit} from {least} to {most}. "
            f"Received: {key}={[low, high]}."
        )


class MorseDemoData(RecordingData):
    """Recordings of Morse code with their texts, generated without a download.

    The texts are words, groups of random characters and phrases of radio amateurs, in capitals.
    Speed, pitch, fading, noise and the rhythm of the hand differ. The same settings give the same
    samples on every machine.
    """

    source: Literal["morse_demo"] = Field(description="The kind of data.")
    examples: int = Field(
        20_000,
        ge=100,
        le=1_000_000,
        description="Number of recordings to generate, including those for validation and test: "
        "500 each, or a tenth of all if that is less.",
    )
    seed: int = Field(1, ge=0, description="Random seed of the recordings.")
    sample_rate: int = Field(8000, ge=4000, le=48_000, description="Samples per second.")
    max_seconds: float = Field(
        10.0,
        ge=2,
        le=60,
        description="Largest duration of a text at its exact speed: longer texts are sent faster, "
        "or left out. Silence and the rhythm of the hand may add two seconds.",
    )
    words_per_minute: Range = Field(
        [10.0, 30.0],
        description="Lowest and highest speed, in words of 50 dots such as PARIS per minute.",
    )
    pitch: Range = Field([400.0, 900.0], description="Lowest and highest pitch of the tone, in Hz.")
    jitter: float = Field(
        0.1,
        ge=0,
        le=0.3,
        description="Largest irregularity of the hand: standard deviation of the lengths of dots "
        "and dashes, relative to them. Gaps between characters vary twice as much.",
    )
    fading: Share = Field(
        0.7,
        description="Largest share of the amplitude that is lost when a fading signal is weakest.",
    )
    snr: Range = Field(
        [0.0, 20.0],
        description="Lowest and highest ratio of signal and noise, in dB: mean power of the tone "
        "while the key is down, over the power of the noise in the whole band.",
    )
    test_snr: float = Field(
        10.0, ge=-30, le=60, description="Ratio of signal and noise in the test split, in dB."
    )

    @model_validator(mode="after")
    def _ranges_rise(self):
        check_range(self, "words_per_minute", 5, 60, "words per minute")
        check_range(self, "pitch", 100, self.sample_rate / 2, "Hz")
        check_range(self, "snr", -30, 60, "dB")
        return self
