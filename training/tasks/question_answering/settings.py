"""The kind of `[data]` for question answering."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.data_sections import TokenData
from keras_transformer.training.settings.fields import Files, PathText


class SquadData(TokenData):
    """Files in SQuAD's format 1.1: passages, questions about them and their answers, in JSON."""

    columns: ClassVar = ("question", "passage", "begin", "answers")

    source: Literal["squad"] = Field(description="The kind of data.")
    train: Files = Field(description="Training files.")
    validation: PathText = Field(description="Validation file.")
    test: PathText | None = Field(None, description="Test file for `evaluate`; optional.")

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.question_answering.squad import open_squad

        return open_squad(self)
