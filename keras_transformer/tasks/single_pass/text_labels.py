"""Codecs and pipelines of models that read a text and predict labels of it or of its words."""

from typing import Any, TypeVar

from keras_transformer.tasks.single_pass.labels import LabelCodec
from keras_transformer.tasks.single_pass.text import TextCodec
from keras_transformer.tasks.single_pass.text_pass import TextPass

Kind = TypeVar("Kind", bound="TextLabelCodec")


class TextLabelCodec(LabelCodec, TextCodec):
    """The codec of a model that reads a text and predicts labels.

    Args:
        tokenizer, max_length: See `TextCodec`.
        labels: Names of the classes C.
    """

    def __init__(self, tokenizer, max_length, labels):
        super().__init__(tokenizer, max_length)
        self.labels = tuple(labels)

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {"labels": list(self.labels), **super().metadata()}

    @classmethod
    def from_metadata(cls: type[Kind], metadata, tokenizers) -> Kind:  # noqa: D102
        return cls(tokenizers, metadata["max_length"], metadata["labels"])


class TextLabelPass(TextPass):
    """A `TextPass` whose codec is a `TextLabelCodec`."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the probabilities."""
        return self.codec.labels

    def make_codec(self) -> TextLabelCodec:  # noqa: D102
        return self.codec_class(self.tokenizers, self.max_length, self.model.config.head.labels)
