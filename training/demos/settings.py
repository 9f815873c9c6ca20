"""Kinds of `[data]` that are generated, apart from that of the README."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keras_transformer.training.data.batching import BUCKETS
from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.data_sections import TokenData
from keras_transformer.training.settings.fields import Buckets, DataSettings, PathText, Positive
from keras_transformer.training.tasks.speech_recognition.settings import SAMPLE_RATE, RecordingData
from keras_transformer.training.tasks.token_classification.settings import SCHEME

Range = Annotated[list[float], Field(min_length=2, max_length=2)]
WholeRange = Annotated[list[int], Field(min_length=2, max_length=2)]
Share = Annotated[float, Field(ge=0, le=1)]
VOICES = ["en", "en+f4", "en-us", "en-us+f2", "en-us+m3"]


class ReportsData(TokenData):
    """Short reports on orders and their summaries, generated without a download."""

    source: Literal["reports"] = Field(description="The kind of data.")
    examples: int = Field(
        40_000,
        ge=100,
        description="Number of pairs to generate, including those for validation and test.",
    )
    seed: int = Field(1, ge=0, description="Random seed of the reports.")
    data_dir: PathText | None = Field(
        None,
        description="Folder of the generated reports. Default: the folder of TensorFlow Datasets.",
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.demos.reports import open_reports

        return open_reports(self)


class EntitiesData(TokenData):
    """Generated sentences with names, dates and amounts, without a download."""

    columns: ClassVar = ("words", "labels")

    source: Literal["entities"] = Field(description="The kind of data.")
    examples: int = Field(
        20_000,
        ge=100,
        description="Number of sentences to generate, including those for validation and test.",
    )
    seed: int = Field(1, ge=0, description="Random seed of the sentences.")
    scheme: Literal["BIO", "BIOES"] = SCHEME

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.demos.entities import open_entities

        return open_entities(self)


class FactsData(TokenData):
    """Generated passages of three facts, each with a question about a fact, without a download."""

    columns: ClassVar = ("question", "passage", "begin", "answers")

    source: Literal["facts"] = Field(description="The kind of data.")
    examples: int = Field(
        30_000,
        ge=100,
        description="Number of questions to generate, including those for validation and test.",
    )
    seed: int = Field(1, ge=0, description="Random seed of the questions.")

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.demos.facts import open_facts

        return open_facts(self)


class StoriesData(TokenData):
    """Generated stories with questions of several kinds, in the manner of bAbI, without a download.

    The training split has `questions` of each kind, and the test split has 1,000 different ones. A
    tenth of the training questions is the validation split, as in Sukhbaatar et al. (2015).
    """

    columns: ClassVar = ("story", "question", "answer", "kind", "support")

    source: Literal["stories"] = Field(description="The kind of data.")
    kinds: list[Literal["one_fact", "two_facts", "three_facts", "yes_no", "counting"]] | None = (
        Field(
            None,
            min_length=1,
            description="Kinds of questions: about one, two or three supporting facts, with the "
            "answer yes or no, and about a number of things. If omitted: all of them.",
        )
    )
    questions: int = Field(
        1000,
        ge=10,
        le=100_000,
        description="Number of questions of each kind for training and validation.",
    )
    seed: int = Field(1, ge=0, description="Random seed of the stories.")

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.demos.stories import open_stories

        return open_stories(self)


def check_range(section, key, least, most, unit) -> None:
    """Raises a `ValueError` unless two numbers rise and are within limits."""
    low, high = getattr(section, key)
    if not least <= low <= high <= most:
        raise ValueError(
            f"`{key}` must be a smaller and a larger number of {unit} from {least} to {most}. "
            f"Received: {key}={[low, high]}."
        )


class ArithmeticData(DataSettings):
    """Generated sums or products of two binary numbers; the test split has longer numbers."""

    columns: ClassVar = ("expression", "value")

    source: Literal["arithmetic"] = Field(description="The kind of data.")
    operation: Literal["addition", "multiplication"] = Field(
        "addition", description="The operation."
    )
    digits: WholeRange = Field(
        [1, 20],
        description="Fewest and most digits of a number in training and validation. All counts of "
        "digits are equally frequent, and both numbers of an expression have the same count.",
    )
    examples: int = Field(
        50_000,
        ge=100,
        description="Number of expressions to generate, including a tenth, or 500 if that is less, "
        "for validation.",
    )
    test_digits: list[Positive] = Field(
        [20, 40, 100, 200],
        min_length=1,
        description="Counts of digits of the numbers in the test split.",
    )
    test_examples: Positive = Field(
        100, description="Number of expressions in the test split for each count of digits."
    )
    seed: int = Field(1, ge=0, description="Random seed of the expressions.")
    batch_symbols: Positive = Field(
        512, description="Maximum size of a batch in symbols of expressions, including padding."
    )

    buckets: Buckets = BUCKETS

    @property
    def size_of_batch(self) -> int:
        """Size of a batch, in symbols."""
        return self.batch_symbols

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.demos.arithmetic import open_arithmetic

        return open_arithmetic(self)

    @model_validator(mode="after")
    def _digits_rise(self):
        check_range(self, "digits", 1, 10_000, "digits")
        if self.batch_symbols <= 2 * self.digits[1]:
            raise ValueError(
                "`batch_symbols` must be above twice the most digits, so that the longest "
                f"expression fits into a batch. Received: batch_symbols={self.batch_symbols}, "
                f"digits={self.digits}."
            )
        return self


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
        description="Maximum duration of a text at its exact speed. Longer texts are sent "
        "faster, or left out. Silence and the rhythm of the hand may add two seconds.",
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
        description="Largest irregularity of the hand: the standard deviation of the lengths "
        "of dots and dashes, relative to these lengths. Gaps between characters vary twice as "
        "much.",
    )
    fading: Share = Field(
        0.7,
        description="Largest share of the amplitude that is lost when a fading signal is weakest.",
    )
    snr: Range = Field(
        [0.0, 20.0],
        description="Lowest and highest signal-to-noise ratio, in dB: the mean power of the "
        "tone while the key is down, divided by the power of the noise in the whole band.",
    )
    test_snr: float = Field(
        10.0, ge=-30, le=60, description="Signal-to-noise ratio in the test split, in dB."
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.demos.morse import open_morse_demo

        return open_morse_demo(self)

    @model_validator(mode="after")
    def _ranges_rise(self):
        check_range(self, "words_per_minute", 5, 60, "words per minute")
        check_range(self, "pitch", 100, self.sample_rate / 2, "Hz")
        check_range(self, "snr", -30, 60, "dB")
        return self


class SpokenDemoData(RecordingData):
    """The phrases of the demo, spoken by the program eSpeak NG, which must be installed.

    Dates, times, numbers, amounts of money, measures and lists of names in English, by several
    voices at several speeds and pitches. No sentence of validation or test is in the training
    split. One more voice speaks the sentences of the test split: the folder of the recordings has
    them in the table `unseen_voice.tsv`.
    """

    source: Literal["spoken_demo"] = Field(description="The kind of data.")
    examples: int = Field(
        10_000,
        ge=100,
        le=100_000,
        description="Number of phrases, including a tenth for validation and a tenth for the test.",
    )
    seed: int = Field(1, ge=0, description="Random seed of phrases, voices, speeds and pitches.")
    voices: list[str] = Field(
        VOICES,
        min_length=1,
        description="Voices of eSpeak NG, with a variant after `+`: `espeak-ng --voices=en` "
        "and `espeak-ng --voices=variant` list them. Two voices that sound the same are an "
        "error, because eSpeak NG ignores some variants, such as the variant in `en-gb+f4`.",
    )
    unseen_voice: str = Field("en+f5", description="The voice that is not in the splits.")
    words_per_minute: WholeRange = Field([130, 200], description="Lowest and highest speed.")
    pitch: WholeRange = Field([30, 70], description="Lowest and highest pitch, from 0 to 99.")
    sample_rate: int = SAMPLE_RATE
    data_dir: PathText | None = Field(
        None,
        description="Folder of the recordings. Default: the folder of TensorFlow Datasets.",
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.demos.spoken import open_spoken_demo

        return open_spoken_demo(self)

    @model_validator(mode="after")
    def _ranges_rise_and_voices_differ(self):
        check_range(self, "words_per_minute", 80, 450, "words per minute")
        check_range(self, "pitch", 0, 99, "steps")
        if self.unseen_voice in self.voices:
            raise ValueError(
                f"`unseen_voice` must not be one of `voices`. Received: {self.unseen_voice!r}."
            )
        return self
