"""Kinds of `[data]` for question answering."""

from typing import ClassVar, Literal

from pydantic import Field

from keras_transformer.training.settings.data_sections import TokenData
from keras_transformer.training.settings.fields import Files, PathText


class FactsData(TokenData):
    """Generated passages of three facts, each with a question about one, without a download."""

    columns: ClassVar = ("question", "passage", "begin", "answers")

    source: Literal["facts"] = Field(description="The kind of data.")
    examples: int = Field(
        30_000,
        ge=100,
        description="Number of questions to generate, including those for validation and test.",
    )
    seed: int = Field(1, ge=0, description="Random seed of the questions.")


class SquadData(TokenData):
    """Files in SQuAD's format 1.1: passages, questions about them and their answers, in JSON."""

    columns: ClassVar = ("question", "passage", "begin", "answers")

    source: Literal["squad"] = Field(description="The kind of data.")
    train: Files = Field(description="Training files.")
    validation: PathText = Field(description="Validation file.")
    test: PathText | None = Field(None, description="Test file for `evaluate`; optional.")
