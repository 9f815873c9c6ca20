"""Training of text classification."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import Labels, Tokens
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.tasks.task import TextTraining


class ClassificationTraining(TextTraining):
    """Training on texts and their labels with the smoothed cross-entropy of the label.

    A batch is (tokens [B, S], labels [B]), int32; a label is its index in the `labels` of the
    configuration.
    """

    @classmethod
    def label_fields(cls, names) -> dict[str, Any]:  # noqa: D102
        return {"label": Labels(names)}

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        labels = self.label_fields(self.config.head.labels)
        return {"text": Tokens(self.tokenizers.source), **labels}

    def assemble(self, text, label) -> tuple:  # noqa: D102
        return text, label

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return ClassCrossEntropy(settings.label_smoothing)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each text, and 0 for rows that pad a replica's batch."""
        return tf.cast(tf.reduce_any(tf.not_equal(inputs, self.pad_id), axis=1), tf.float32)
