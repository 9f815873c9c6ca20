"""Training of scores of pairs of texts."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.fields import Floats, Tokens
from keras_transformer.tasks.scoring.pairs import encode_pairs
from keras_transformer.tensors import Tensor
from keras_transformer.training.tasks.task import TextTraining


class ScoringTraining(TextTraining):
    """Training on pairs of texts and a number for each.

    A batch is (tokens [B, S], labels [B, 1]), int32 and float32. With the score `"sigmoid"`, the
    loss is the binary cross-entropy of labels from 0 to 1, as in Nogueira and Cho (2019), Eq. 1;
    with `"none"`, it is the squared error.
    """

    columns = ("query", "passage", "label")

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        limits = (0, 1) if self.config.head.score_activation == "sigmoid" else (None, None)
        return {"tokens": Tokens(self.tokenizers.source), "label": Floats(*limits)}

    def identity(self) -> dict[str, Any]:
        """Returns everything that rows depend on besides the data, including their limit."""
        row = {"max_length": self.config.max_length, "pair_layout": self.config.head.pair_layout}
        return {**super().identity(), **row}

    def encode(self, columns) -> dict[str, Any]:
        """Returns the rows of token ids and the labels."""
        texts = columns["query"], columns["passage"]
        layout = LAYOUTS[self.config.head.pair_layout]
        tokenizer = self.tokenizers.source
        tokens, _ = encode_pairs(tokenizer, layout, *texts, self.config.max_length)
        return {"tokens": tokens, "label": self.fields["label"].encode(columns["label"])}

    def assemble(self, tokens, label) -> tuple:  # noqa: D102
        return tokens, tf.expand_dims(label, 1)

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        if self.config.head.score_activation == "sigmoid":
            return keras.losses.BinaryCrossentropy(from_logits=True)
        return keras.losses.MeanSquaredError()

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return []

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each pair, and 0 for rows that pad a replica's batch."""
        return tf.cast(tf.reduce_any(tf.not_equal(inputs, self.pad_id), axis=1), tf.float32)
