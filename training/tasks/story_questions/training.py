"""Training of answers to questions about stories."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import Labels, Tokens
from keras_transformer.tasks.story_questions.rows import story_rows
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.tasks.task import TextTraining


class StoryTraining(TextTraining):
    """Training on questions, stories and answers with the smoothed cross-entropy of the answer.

    A batch is (tokens [B, S], answers [B]), int32: see `story_rows`; an answer is its index in the
    `labels` of the configuration. The kinds of questions and the supporting sentences are not used.
    """

    columns = ("story", "question", "answer", "kind", "support")

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {
            "tokens": Tokens(self.tokenizers.source),
            "answer": Labels(self.config.head.labels),
        }

    @property
    def memory_size(self) -> int | None:
        """Maximum number of sentences of a row; `None`: no limit."""
        return getattr(self.config.encoder, "memory_size", None)

    def identity(self) -> dict[str, Any]:
        """Returns everything that rows depend on besides the data, including their limits."""
        limits = {"max_length": self.config.max_length, "memory_size": self.memory_size}
        return {**super().identity(), **limits}

    def encode(self, columns) -> dict[str, Any]:
        """Returns token ids and the indices of the answers."""
        texts = columns["story"], columns["question"]
        limits = self.config.max_length, self.memory_size
        tokens, _ = story_rows(self.tokenizers.source, *texts, *limits)
        return {"tokens": tokens, "answer": self.fields["answer"].encode(columns["answer"])}

    def assemble(self, tokens, answer) -> tuple:  # noqa: D102
        return tokens, answer

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return ClassCrossEntropy(settings.label_smoothing)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each question, and 0 for rows that pad a replica's batch."""
        return tf.cast(tf.reduce_any(tf.not_equal(inputs, self.pad_id), axis=1), tf.float32)
