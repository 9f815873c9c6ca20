"""Training of sentence embeddings, with its contrastive loss."""

from typing import Any

import keras
import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.tensors import Tensor
from keras_transformer.training.data.stream import Epochs
from keras_transformer.training.tasks.task import TextTraining

FORBIDDEN = -1e9  # similarity of a text that is no negative
BUCKETS = 2**31 - 1  # of hashes, which are int32


class EmbeddingTraining(TextTraining):
    """Training on pairs of texts with a loss that compares all texts of a batch.

    A batch of B pairs is (tokens [2 * B, S], labels [B, 2]), int32: the first texts, then the
    second ones. A label is a hash of the text, by which the loss knows equal texts.
    """

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {name: Tokens(self.tokenizers.source) for name in ("text", "similar")}

    def epochs(self, corpus, settings) -> Epochs:
        """Returns the `Epochs`; see `Training.epochs`.

        Raises:
            ValueError: If every batch has only one pair, which has nothing to be compared with.
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
        labels = tf.stack([_hashes(text), _hashes(similar)], axis=1)  # [B, 2]
        width = tf.maximum(tf.shape(text)[1], tf.shape(similar)[1])
        both = [
            tf.pad(tokens, [[0, 0], [0, width - tf.shape(tokens)[1]]], constant_values=self.pad_id)
            for tokens in (text, similar)
        ]
        return tf.concat(both, axis=0), labels

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            raise ValueError(
                "Models for embedding are trained on one device: every text is compared with all "
                "others of its batch, which several replicas would divide. Remove --strategy."
            )
        return ContrastiveLoss(self.config.head.scale, self.config.head.symmetric)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return []

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each pair."""
        return tf.ones([tf.shape(labels)[0]])


def _hashes(tokens):
    """Returns a hash of each row of tokens, int32 `[B]`."""
    texts = tf.strings.reduce_join(tf.strings.as_string(tokens), axis=1, separator=" ")
    return tf.cast(tf.strings.to_hash_bucket_fast(texts, BUCKETS), tf.int32)


class ContrastiveLoss(keras.losses.Loss):
    """Negative log-probability of each text's partner among all second texts of its batch.

    `loss_i = log(sum_j exp(scale * a_i . b_j)) - scale * a_i . b_i`. A pair j with the same first
    or the same second text as pair i is left out of its sum, because its second text is right too.

    Args:
        scale: Factor on the similarities, the inverse of a temperature.
        symmetric: Whether the loss is the mean of this one and of that with both sides exchanged.
        name: Name of the loss.

    Call arguments:
        labels: Numbers that stand for the texts, integers `[B, 2]`; equal texts have equal numbers.
        vectors: Vectors of all first texts, then of all second texts, float32 `[2 * B, D]`.

    Returns:
        From `call`, the loss of each pair, `[B]`.

    Reference: Henderson et al. (2017), section 4; both sides as in Radford et al. (2021), CLIP.
    """

    def __init__(self, scale=20.0, symmetric=False, name="contrastive"):
        super().__init__(name=name)
        self.scale, self.symmetric = scale, symmetric

    def call(self, y_true, y_pred) -> Tensor:
        labels, vectors = y_true, tf.cast(y_pred, tf.float32)
        first, second = tf.split(vectors, 2)  # [B, D]
        similarity = self.scale * tf.matmul(first, second, transpose_b=True)  # [B, B]
        texts = tf.transpose(labels)  # [2, B]
        same = tf.reduce_any(texts[:, :, None] == texts[:, None, :], axis=0)  # [B, B]
        partner = tf.linalg.diag_part(similarity)  # [B]
        similarity = tf.where(same, FORBIDDEN, similarity)
        similarity = tf.linalg.set_diag(similarity, partner)
        loss = tf.reduce_logsumexp(similarity, axis=1) - partner  # [B]
        if self.symmetric:
            loss = (loss + tf.reduce_logsumexp(similarity, axis=0) - partner) / 2
        return loss
