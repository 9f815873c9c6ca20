"""Kinds of `[data]` for speech recognition."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from keras_transformer.training.data.batching import BUCKETS
from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.fields import Buckets, DataSettings, PathText, Positive

Speed = Annotated[float, Field(ge=0.5, le=2)]
SAMPLE_RATE = Field(
    16_000, ge=4000, le=48_000, description="Samples per second; other recordings are converted."
)


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

    buckets: Buckets = BUCKETS

    @property
    def size_of_batch(self) -> int:
        """Size of a batch, in frames."""
        return self.batch_frames

    speeds: list[Speed] = Field(
        [1.0],
        min_length=1,
        description="Speeds of the training recordings: an epoch has a copy of each recording "
        "at each of these speeds, such as `[0.9, 1.0, 1.1]` (Ko et al., 2015). The pitch also "
        "changes.",
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

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.speech_recognition.files import open_speech_files

        return open_speech_files(self)

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

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.speech_recognition.tfds import open_tfds_speech

        return open_tfds_speech(self)
