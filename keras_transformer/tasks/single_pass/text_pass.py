"""Pipelines of models that read a text and answer in one pass."""

import abc
from collections.abc import Sequence
from typing import Any, TypeVar

import keras
import tensorflow as tf

from keras_transformer.tasks.pipeline import TextPipeline
from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.text.tokenizers import Tokenizer

Pass = TypeVar("Pass", bound="TextPass")


class TextPass(SinglePass, TextPipeline, abc.ABC):
    """A trained model that answers in one pass about a text, with its tokenizer.

    Args:
        model, tokenizer, max_length: See `TextPipeline`. Longer texts are truncated.
    """

    def __init__(
        self,
        model: keras.Model | Sequence[keras.Model],
        tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
        max_length: int | None = None,
    ):
        super().__init__(model, tokenizer, max_length)
        self.codec = self.make_codec()
        self.check_models()

    def with_settings(self: Pass, **settings: Any) -> Pass:  # noqa: D102
        self.check_settings(settings)
        models = self.model if len(self.models) == 1 else list(self.models)
        pipeline = self.with_model(models)
        for name, value in settings.items():
            pipeline._set(name, value)
        return pipeline

    def _set(self, name, value):
        """Sets one of the `settings` of a new pipeline; see `with_settings`."""
        raise NotImplementedError

    def make_codec(self) -> Any:
        """Returns the codec."""
        return self.codec_class(self.tokenizers, self.max_length)

    def reading(self, sentence: str) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the tokens of the text; see `TextPipeline.reading`."""
        inputs, others = self.codec.encode(tf.constant([sentence]))
        ids = inputs["source"]  # [1, S]
        pieces = self.source_tokenizer.pieces(ids[0].numpy())
        return ids, {"encoder": (pieces, pieces)}, bool(others["truncated"][0])
