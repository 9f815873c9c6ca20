"""The pipeline of extractive question answering."""

from typing import Any

import tensorflow as tf

from keras_transformer.checks import check_flag
from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.tasks.question_answering.codec import AnswerCodec
from keras_transformer.tasks.question_answering.model import SpanPredictor
from keras_transformer.tasks.single_pass.text_pass import TextPass


class QuestionAnswerer(TextPass):
    """A trained `SpanPredictor` with its tokenizer.

    Args:
        model: A `SpanPredictor`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a row in tokens; see `AnswerCodec`. `None`: the model's
            `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.
    """

    task = "question_answering"
    model_class = SpanPredictor
    request = ("question", "passage")
    output = "answer"
    codec_class = AnswerCodec
    settings = ("no_answer",)

    def with_model(self, model: Any) -> "QuestionAnswerer":  # noqa: D102
        pipeline = super().with_model(model)
        pipeline.codec.no_answer = self.codec.no_answer
        return pipeline

    def _set(self, name, value):
        check_flag(name, value)
        self.codec.no_answer = value  # the graph that reads it is traced later

    def reading(self, sentence: str) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the tokens of the question and the first window; see `TextPipeline.reading`."""
        try:
            question, passage = self.parse(sentence)
        except ValueError as error:
            raise ValueError(f"`sentence` {error}") from None
        inputs, rest = self.codec.encode(tf.constant([question]), tf.constant([passage]))
        ids = inputs["source"][:1]  # [1, S]
        pieces = self.source_tokenizer.pieces(ids[0].numpy())
        cut = rest["truncated"][0] or len(inputs["source"]) > 1
        return ids, {"encoder": (pieces, pieces)}, bool(cut)

    def make_codec(self) -> AnswerCodec:  # noqa: D102
        config = self.model.config
        layout = LAYOUTS[config.head.pair_layout]
        if self.max_length is not None and self.max_length < layout.smallest:
            raise ValueError(
                f"`max_length` must be at least {layout.smallest}, for a question, a passage and "
                f"the marks around them. Received: {self.max_length}."
            )
        options = {name: getattr(config.head, name) for name in AnswerCodec.options}
        return AnswerCodec(self.tokenizers, self.max_length, **options)
