"""The kind of `[data]` for token classification."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.data_sections import TokenData
from keras_transformer.training.settings.fields import Files, PathText

SCHEME = Field(
    "BIO",
    description="Encoding of spans as labels: B-X begins a span and I-X continues it; in BIOES, "
    "E-X ends a span and S-X is a span of one word.",
)


class ConllData(TokenData):
    """CoNLL files: a word with its columns on each line, and an empty line after each sentence.

    Columns are separated by spaces or tabs; a no-break space is part of a word.
    """

    columns: ClassVar = ("words", "labels")

    source: Literal["conll"] = Field(description="The kind of data.")
    train: Files = Field(description="Training files.")
    validation: PathText = Field(description="Validation file.")
    test: PathText | None = Field(None, description="Test file for `evaluate`; optional.")
    column: int = Field(
        -1,
        description="Column of the label, counted from 1; a negative number counts from "
        "the end of the line.",
    )
    scheme: Literal["BIO", "BIOES", "BILOU", "IOB1", "IOE", "IO"] = Field(
        "BIO",
        description="Encoding of spans as labels, BIO X, with L and U for E and S; or one that "
        "is converted to BIO: IOB1, the encoding of CoNLL-2003, in which I-X also begins a "
        "span; IOE, in which E-X ends a span; or IO, in which neighbours of one type are one "
        "span, and types may stand alone.",
    )

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.token_classification.conll import open_conll

        return open_conll(self)

    @field_validator("column")
    @classmethod
    def _some_column(cls, column):
        if column == 0:
            raise ValueError("`column` must not be 0: columns are counted from 1. Received: 0.")
        return column
