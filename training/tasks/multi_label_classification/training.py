"""Training of classification with several labels."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import LabelSets, Tokens
from keras_transformer.tensors import Tensor
from keras_transformer.training.tasks.multi_label_classification.label_f1 import LabelF1
from keras_transformer.training.tasks.task import TextTraining


class MultiLabelClassificationTraining(TextTraining):
    """Training on texts and their labels with the binary cross-entropy of each label.

    A batch is (tokens [B, S], labels [B, C]), int32 and float32; a label is 1 or 0. With logits z,
    labels y and smoothed labels `q = (1 - e) y + e / 2`, the loss of a text is the mean over labels
    of `max(z, 0) - z q + log(1 + exp(-|z|))`, which no logit makes infinite.
    """

    @classmethod
    def label_fields(cls, names) -> dict[str, Any]:  # noqa: D102
        return {"labels": LabelSets(names)}

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        labels = self.label_fields(self.config.head.labels)
        return {"text": Tokens(self.tokenizers.source), **labels}

    def assemble(self, text, labels) -> tuple:  # noqa: D102
        return text, tf.cast(labels, tf.float32)

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        smoothing = settings.label_smoothing
        return keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=smoothing)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        head = self.config.head
        return [
            LabelF1(head.num_labels, head.threshold, average=average, name=f"{average}_f1")
            for average in ("micro", "macro")
        ]

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each text, and 0 for rows that pad a replica's batch."""
        return tf.cast(tf.reduce_any(tf.not_equal(inputs, self.pad_id), axis=1), tf.float32)
