"""`TextPairsTraining`, the base of trainings on pairs of texts that belong together."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.tensors import Tensor
from keras_transformer.training.data.stream import Epochs
from keras_transformer.training.tasks.task import TextTraining

BUCKETS = 2**31 - 1  # of hashes, which are int32


class TextPairsTraining(TextTraining):
    """Training on pairs of texts with a loss that compares all texts of a batch.

    A batch of B pairs is (tokens [2 * B, S], labels [B, 2]), int32: the first texts, then the
    second ones. A label is a hash of the text, by which the loss knows equal texts.

    Attributes:
        purpose: Name of the task, for messages.
    """

    purpose = ""

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {name: Tokens(self.tokenizers.source) for name in ("text", "similar")}

    def epochs(self, corpus, settings) -> Epochs:
        """Returns the `Epochs`; see `Training.epochs`.

        Raises:
            ValueError: If every batch has only one pair: there is no other to compare it with.
        """
        epochs = super().epochs(corpus, settings)
        if epochs.steps >= corpus.drawn_size:
            raise ValueError(
                "`data.batch_tokens` must be large enough for several pairs: each text is compared "
                "with the others of its batch. Received: "
                f"data.batch_tokens={settings.data.size_of_batch}, one pair in each batch."
            )
        return epochs

    def assemble(self, text, similar) -> tuple:  # noqa: D102
        labels = tf.stack([text_hashes(text), text_hashes(similar)], axis=1)  # [B, 2]
        width = tf.maximum(tf.shape(text)[1], tf.shape(similar)[1])
        both = [
            tf.pad(tokens, [[0, 0], [0, width - tf.shape(tokens)[1]]], constant_values=self.pad_id)
            for tokens in (text, similar)
        ]
        return tf.concat(both, axis=0), labels

    def check_devices(self) -> None:
        """Refuses several devices, which would divide a batch.

        Raises:
            ValueError: If there are several.
        """
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            raise ValueError(
                f"Models for {self.purpose} are trained on one device: every text is compared with "
                "all others of its batch, which several replicas would divide. Remove --strategy."
            )

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return []

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each pair."""
        return tf.ones([tf.shape(labels)[0]])


def text_hashes(tokens) -> Tensor:
    """Returns a hash of each row of tokens, int32 `[B]`."""
    texts = tf.strings.reduce_join(tf.strings.as_string(tokens), axis=1, separator=" ")
    return tf.cast(tf.strings.to_hash_bucket_fast(texts, BUCKETS), tf.int32)
