"""The pipeline of token classification: a label for each word of a text."""

from collections.abc import Sequence
from typing import Any

from keras_transformer.checks import check_flag
from keras_transformer.tasks.single_pass.text_labels import TextLabelPass
from keras_transformer.tasks.strings import check_sentences
from keras_transformer.tasks.token_classification.entities import EntityCodec, TextEntities
from keras_transformer.tasks.token_classification.model import TokenClassifier


class TokenClassificationPipeline(TextLabelPass):
    """A trained `TokenClassifier` with its tokenizer.

    Args:
        model: A `TokenClassifier`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a text in tokens, including its end token; words beyond it get
            the label `O`. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.
    """

    task = "token_classification"
    model_class = TokenClassifier
    output = "labels"
    codec_class = EntityCodec
    settings = ("spans",)

    def with_model(self, model: Any) -> "TokenClassificationPipeline":  # noqa: D102
        pipeline = super().with_model(model)
        pipeline.codec = pipeline.codec.changed(spans=self.codec.spans)
        return pipeline

    def _set(self, name, value):
        check_flag(name, value)
        self.codec = self.codec.changed(spans=value)  # the graph that reads it is traced later

    def entities(self, texts: Sequence[str], batch_size: int = 64) -> list[TextEntities]:
        """Returns the `TextEntities` of each text of a list, in order.

        Texts are raw: their words are those of the tokenizer, and an `Entity` has its offsets in
        characters of the text.

        Args:
            texts: List of strings.
            batch_size: Number of texts labelled at a time.

        Raises:
            TypeError: If `texts` is not a list of strings.
        """
        texts = check_sentences(texts, "texts")
        return self.with_settings(spans=True).answer(texts, batch_size=batch_size)
