"""The kinds of `[data]` for question answering."""

from typing import ClassVar, Literal

from pydantic import Field

from keras_transformer.training.settings.data_sections import TokenData
from keras_transformer.training.settings.fields import Files, PathText


class FactsData(TokenData):
    """Generated passages of three facts with a question about one, with nothing to download."""

    columns: ClassVar = ("question", "passage", "begin", "answers")

    source: Literal["facts"] = Field(description="The kind of data.")
    examples: int = Field(
        30_000, ge=100, description="Questions to generate, held-out ones included."
    )
    seed: int = Field(1, ge=0, description="Decides which questions are generated.")


class SquadData(TokenData):
    """Files in SQuAD's format 1.1: passages, questions about them and their answers, in JSON."""

    columns: ClassVar = ("question", "passage", "begin", "answers")

    source: Literal["squad"] = Field(description="The kind of data.")
    train: Files = Field(description="Files to train on.")
    validation: PathText = Field(description="File to validate with.")
    test: PathText | None = Field(None, description="File for `evaluate`; may be left out.")
