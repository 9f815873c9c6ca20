"""The pipeline of classification with several labels."""

import copy
from collections.abc import Sequence
from typing import Any

from keras_transformer.checks import check_flag
from keras_transformer.tasks.multi_label_classification.codec import LabelSet, LabelSetCodec
from keras_transformer.tasks.multi_label_classification.model import MultiLabelClassifier
from keras_transformer.tasks.multi_label_classification.thresholds import thresholds_of
from keras_transformer.tasks.single_pass.text_labels import TextLabelPass
from keras_transformer.tasks.strings import check_sentences


class MultiLabelClassificationPipeline(TextLabelPass):
    """A trained `MultiLabelClassifier` with its tokenizer.

    `with_settings(threshold=...)` returns a pipeline with another threshold, a number for all
    labels or a dictionary from labels to numbers. With `with_settings(probabilities=True)` the text
    of an answer is an object in JSON: the predicted labels with their probabilities.

    Args:
        model: A `MultiLabelClassifier`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a text in tokens, including its end token; longer texts are
            truncated. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.

    Example:
        from keras_transformer.pipelines import MultiLabelClassificationPipeline
        pipeline = MultiLabelClassificationPipeline.from_run("runs/tags")
        pipeline("a small editor for programmers")  # 'interface::text-mode,works-with::text'
    """

    task = "multi_label_classification"
    model_class = MultiLabelClassifier
    output = "labels"
    codec_class = LabelSetCodec
    settings = ("threshold", "probabilities")

    @classmethod
    def with_files_of(  # noqa: D102
        cls, run: Any, model: Any, max_length: int | None = None
    ) -> "MultiLabelClassificationPipeline":
        pipeline = super().with_files_of(run, model, max_length)
        threshold = run.read_threshold()
        if threshold is None:
            return pipeline
        try:
            return pipeline.with_settings(threshold=threshold)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{run.threshold} does not fit the model: {error}") from error

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold of each label, in the order of `labels`."""
        return self.codec.thresholds

    def classify(self, texts: Sequence[str], batch_size: int = 64) -> list[LabelSet]:
        """Returns a `LabelSet` for each string of a list.

        Args:
            texts: List of strings of any length.
            batch_size: Number of texts classified at a time. A batch contains texts of similar
                length.

        Raises:
            TypeError: If `texts` is not a list of strings.
        """
        return self.answer(check_sentences(texts, "texts"), batch_size=batch_size)

    def make_codec(self) -> LabelSetCodec:  # noqa: D102
        head = self.model.config.head
        options = head.labels, head.threshold, head.separator
        return LabelSetCodec(self.tokenizers, self.max_length, *options)

    def with_model(self, model: Any) -> "MultiLabelClassificationPipeline":  # noqa: D102
        pipeline = super().with_model(model)
        pipeline.codec.thresholds = self.codec.thresholds
        pipeline.codec.shows_probabilities = self.codec.shows_probabilities
        return pipeline

    def _set(self, name, value):
        self.codec = copy.copy(self.codec)  # the graph that reads it is traced later
        if name == "probabilities":
            check_flag(name, value)
            self.codec.shows_probabilities = value
        else:
            self.codec.thresholds = thresholds_of(value, self.labels)
