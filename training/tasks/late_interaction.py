"""Training of late interaction, with a contrastive loss of MaxSim."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.tasks.late_interaction.codec import InteractionCodec
from keras_transformer.tasks.late_interaction.max_sim import all_similarities
from keras_transformer.tasks.late_interaction.rows import InteractionRows
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.contrastive import partner_loss
from keras_transformer.training.tasks.text_pairs import TextPairsTraining, text_hashes


class LateInteractionTraining(TextPairsTraining):
    """Training on queries with a right passage each; the other passages of a batch are wrong.

    A batch of B pairs is (tokens [2 * B, S], labels [2 * B, 1 + S]), int32: the rows of the
    queries, then those of the passages. A label is a hash of the text, by which the loss knows
    equal texts, and 1 for each token that is compared.
    """

    purpose = "late_interaction"

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {name: Tokens(self.tokenizers.source) for name in ("query", "passage")}

    def assemble(self, query, passage) -> tuple:  # noqa: D102  # ty: ignore[lost-keyword-for-regular-parameter]
        head = self.config.head
        options = {name: getattr(head, name) for name in InteractionCodec.options}
        rows = InteractionRows(self.tokenizers.source, self.config.max_length, options)
        sides = [(rows.query, query), (rows.passage, passage)]
        tokens = [rows.of_ids(side, ids) for side, ids in sides]
        width = tf.maximum(*(tf.shape(ids)[1] for ids in tokens))
        padded, labels = [], []
        for (side, ids), row in zip(sides, tokens, strict=True):
            missing = [[0, 0], [0, width - tf.shape(row)[1]]]
            row = tf.pad(row, missing, constant_values=self.pad_id)
            counted = tf.cast(rows.counted(side, row), tf.int32)
            padded.append(row)
            labels.append(tf.concat([text_hashes(ids)[:, None], counted], axis=1))
        return tf.concat(padded, axis=0), tf.concat(labels, axis=0)

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        self.check_devices()
        return LateInteractionLoss(self.config.head.scale)

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each pair."""
        return tf.ones([tf.shape(labels)[0] // 2])


class LateInteractionLoss(keras.losses.Loss):
    """Negative log-probability of each query's passage among all passages of its batch.

    The similarities are MaxSim; see `partner_loss`.

    Args:
        scale: Factor on the similarities, the inverse of a temperature.
        name: Name of the loss.

    Call arguments:
        labels: Integers `[2 * B, 1 + S]`: a number that stands for the text, and 1 for each token
            that is compared.
        vectors: Vectors of the tokens of all queries, then of all passages, `[2 * B, S, N]`.

    Returns:
        From `call`, the loss of each pair, `[B]`.

    Reference: Santhanam et al. (2022), ColBERTv2, section 3.3, "in-batch negatives".
    """

    def __init__(self, scale=1.0, name="late_interaction"):
        super().__init__(name=name)
        self.scale = scale

    def call(self, y_true, y_pred) -> Tensor:
        texts = tf.stack(tf.split(y_true[:, 0], 2))  # [2, B]
        masks = tf.split(y_true[:, 1:] > 0, 2)  # [B, S]
        similarity = self.scale * all_similarities(*tf.split(y_pred, 2), *masks)  # [B, B]
        return partner_loss(similarity, texts)
