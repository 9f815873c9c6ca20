"""The kinds of `[data]` for the labelling of words."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from keras_transformer.training.settings.data_sections import TokenData
from keras_transformer.training.settings.fields import Files, PathText

SCHEME = Field(
    "BIO",
    description="How labels stand for spans: B-X begins one and I-X is inside; in BIOES E-X also "
    "ends one, and S-X is one of a single word.",
)


class EntitiesData(TokenData):
    """Generated sentences with names, dates and amounts, with nothing to download."""

    columns: ClassVar = ("words", "labels")

    source: Literal["entities"] = Field(description="The kind of data.")
    examples: int = Field(
        20_000, ge=100, description="Sentences to generate, held-out ones included."
    )
    seed: int = Field(1, ge=0, description="Decides which sentences are generated.")
    scheme: Literal["BIO", "BIOES"] = SCHEME


class ConllData(TokenData):
    """CoNLL files: on each line a word and its columns, and an empty line after each sentence.

    Spaces and tabs separate columns; a no-break space is part of a word.
    """

    columns: ClassVar = ("words", "labels")

    source: Literal["conll"] = Field(description="The kind of data.")
    train: Files = Field(description="Files to train on.")
    validation: PathText = Field(description="File to validate with.")
    test: PathText | None = Field(None, description="File for `evaluate`; may be left out.")
    column: int = Field(
        -1,
        description="Place of the label in a line, counted from 1; below 0 from the end of the "
        "line.",
    )
    scheme: Literal["BIO", "BIOES", "IOB1"] = Field(
        "BIO",
        description="As of entities; or IOB1, CoNLL-2003's own, in which I-X also begins a span, "
        "and which is read as BIO.",
    )

    @field_validator("column")
    @classmethod
    def _some_column(cls, column):
        if column == 0:
            raise ValueError("`column` must not be 0: columns are counted from 1. Received: 0.")
        return column
