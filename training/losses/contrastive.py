"""Contrastive loss of pairs of texts: each text is compared with all others of its batch."""

import keras
import tensorflow as tf

from keras_transformer.tensors import Tensor

FORBIDDEN = -1e9  # similarity of a text that is no negative


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
        return partner_loss(similarity, tf.transpose(labels), self.symmetric)


def partner_loss(similarity: Tensor, texts: Tensor, symmetric: bool = False) -> Tensor:
    """Returns the loss of each pair, `[B]`; see `ContrastiveLoss`.

    Args:
        similarity: Scaled similarities of all first with all second texts, `[B, B]`.
        texts: Numbers that stand for the first and the second texts, integers `[2, B]`.
        symmetric: See `ContrastiveLoss`.
    """
    same = tf.reduce_any(texts[:, :, None] == texts[:, None, :], axis=0)  # [B, B]
    partner = tf.linalg.diag_part(similarity)  # [B]
    similarity = tf.where(same, FORBIDDEN, similarity)
    similarity = tf.linalg.set_diag(similarity, partner)
    loss = tf.reduce_logsumexp(similarity, axis=1) - partner  # [B]
    if symmetric:
        loss = (loss + tf.reduce_logsumexp(similarity, axis=0) - partner) / 2
    return loss
