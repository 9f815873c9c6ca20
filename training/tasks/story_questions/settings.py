"""The kind of `[data]` for stories in the format of bAbI."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.settings.data_sections import TokenData
from keras_transformer.training.settings.fields import Files


class BabiData(TokenData):
    """Files in bAbI's format: numbered sentences of stories, and questions with their answers.

    The kind of a question is the name of its file without the extension and without `_train`,
    `_valid` or `_test`.
    """

    columns: ClassVar = ("story", "question", "answer", "kind", "support")

    source: Literal["babi"] = Field(description="The kind of data.")
    train: Files = Field(description="Training files.")
    validation: Files | None = Field(
        None, description="Validation files. If omitted: the last tenth of each training file."
    )
    test: Files | None = Field(None, description="Test files for `evaluate`; optional.")

    def open(self, columns: Sequence[str]) -> Source:  # noqa: D102
        from keras_transformer.training.tasks.story_questions.babi import open_babi

        return open_babi(self)
