"""Kinds of `[data]` for speech recognition."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keras_transformer.training.settings.fields import DataSettings, PathText, Positive

Speed = Annotated[float, Field(ge=0.5, le=2)]
Range = Annotated[list[float], Field(min_length=2, max_length=2)]
WholeRange = Annotated[list[int], Field(min_length=2, max_length=2)]
SAMPLE_RATE = Field(
    16_000, ge=4000, le=48_000, description="Samples per second; other recordings are converted."
)
Share = Annotated[float, Field(ge=0, le=1)]


class RecordingData(DataSettings):
    """Base of the kinds of `[data]` whose examples are recordings and their transcripts."""

    columns: ClassVar = ("audio", "text")

    max_length: int = Field(
        100,
        ge=2,
        description="Maximum length of a text in tokens, including its end; examples with a longer "
        "text, or a recording longer than `model.max_seconds`, are left out and counted.",
    )
    batch_frames: Positive = Field(
        16_000, description="Maximum size of a batch in frames, including padding."
    )

    @property
    def size_of_batch(self) -> int:
        """Size of a batch, in frames."""
        return self.batch_frames

    speeds: list[Speed] = Field(
        [1.0],
        min_length=1,
        description="Speeds of the training recordings: an epoch has a copy of each recording at "
        "every one of them, such as `[0.9, 1.0, 1.1]` (Ko et al., 2015). The pitch changes too.",
    )
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

    @model_validator(mode="after")
    def _speeds_differ(self):
        if len(set(self.speeds)) < len(self.speeds):
            raise ValueError(f"`speeds` must be different numbers. Received: {self.speeds}.")
        return self


class SpeechFilesData(RecordingData):
    """Recordings in WAV files, and FLAC files if `soundfile` is installed, with their transcripts.

    Each split is a table or a folder. A line of a table has the path of a recording, relative to
    the folder of the table, a tab and the transcript. In a folder, every recording, at any depth,
    has a `.txt` file of the same name beside it. Paths are relative to the configuration file; `~`
    and `${VARIABLES}` are replaced.
    """

    source: Literal["speech_files"] = Field(description="The kind of data.")
    train: PathText = Field(description="Training recordings: a table or a folder.")
    validation: PathText = Field(description="Validation recordings: a table or a folder.")
    test: PathText | None = Field(
        None, description="Test recordings for `evaluate`: a table or a folder; optional."
    )
    sample_rate: int = SAMPLE_RATE

    @model_validator(mode="after")
    def _splits_differ(self):
        given = [path for path in (self.train, self.validation, self.test) if path is not None]
        if len(set(given)) < len(given):
            raise ValueError("`train`, `validation` and `test` must be different.")
        return self


class TfdsSpeechData(RecordingData):
    """A dataset of TensorFlow Datasets with a feature of sound and one of text.

    The defaults are the clean part of LibriSpeech (Panayotov et al., 2015), of which TensorFlow
    Datasets downloads all 57 GB.
    """

    source: Literal["tfds_speech"] = Field(description="The kind of data.")
    name: str = Field("librispeech", description="Name of the dataset.")
    features: list[str] = Field(
        ["speech", "text"],
        min_length=2,
        max_length=2,
        description="Names of the feature of sound and of the feature of text.",
    )
    train: str = Field(
        "train_clean100+train_clean360",
        description="Training split of the dataset; several are joined by `+`.",
    )
    validation: str = Field("dev_clean", description="Validation split of the dataset.")
    test: str | None = Field("test_clean", description="Test split for `evaluate`; optional.")
    sample_rate: int = SAMPLE_RATE
    data_dir: PathText | None = Field(
        None, description="Folder of the data. Default: the folder of TensorFlow Datasets."
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


VOICES = ["en", "en+f4", "en-us", "en-us+f2", "en-us+m3"]


class SpokenDemoData(RecordingData):
    """The phrases of the demo, spoken by the program eSpeak NG, which must be installed.

    Dates, times, numbers, amounts of money, measures and lists of names in English, by several
    voices at several speeds and pitches. Validation and test have other sentences than the training
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
        description="Voices of eSpeak NG, with a variant after `+`: `espeak-ng --voices=en` and "
        "`espeak-ng --voices=variant` list them. Two that sound the same are an error: the program "
        "ignores some variants, such as that of `en-gb+f4`.",
    )
    unseen_voice: str = Field("en+f5", description="The voice that is not in the splits.")
    words_per_minute: WholeRange = Field([130, 200], description="Lowest and highest speed.")
    pitch: WholeRange = Field([30, 70], description="Lowest and highest pitch, from 0 to 99.")
    sample_rate: int = SAMPLE_RATE
    data_dir: PathText | None = Field(
        None,
        description="Folder of the recordings. Default: the folder of TensorFlow Datasets.",
    )

    @model_validator(mode="after")
    def _ranges_rise_and_voices_differ(self):
        check_range(self, "words_per_minute", 80, 450, "words per minute")
        check_range(self, "pitch", 0, 99, "steps")
        if self.unseen_voice in self.voices:
            raise ValueError(
                f"`unseen_voice` must not be one of `voices`. Received: {self.unseen_voice!r}."
            )
        return self
