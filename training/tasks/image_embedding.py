"""Training of vectors of images, with its contrastive loss."""

import keras
import tensorflow as tf

from keras_transformer.fields import Field, LabelNumbers
from keras_transformer.tensors import Tensor
from keras_transformer.training.tasks.images import ImageTraining

FORBIDDEN = -1e9  # similarity of an image that is not compared


class ImageEmbeddingTraining(ImageTraining):
    """Training on images and their labels with a loss that compares all images of a batch.

    A batch is (images [B, H, W, C] float32, labels [B] int32); equal labels have equal numbers.
    """

    def label_field(self) -> Field:  # noqa: D102
        return LabelNumbers()

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            raise ValueError(
                "Models for image_embedding are trained on one device: every image is compared "
                "with all others of its batch, which several replicas would divide. "
                "Remove --strategy."
            )
        return SupervisedContrastiveLoss(self.config.head.scale)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return []


class SupervisedContrastiveLoss(keras.losses.Loss):
    """Mean negative log-probability of the images with the same label among all other images.

    `loss_i = mean over p of log(sum_a exp(scale * z_i . z_a)) - scale * z_i . z_p`, where a is each
    other image of the batch, and p each one with the label of image i. An image whose label no
    other image has counts 0.

    Args:
        scale: Factor on the similarities, the inverse of a temperature.
        name: Name of the loss.

    Call arguments:
        labels: Numbers that stand for the labels, integers `[B]`.
        vectors: Vectors of the images, float32 `[B, D]`.

    Returns:
        From `call`, the loss of each image, `[B]`.

    Reference: Khosla et al. (2020), "Supervised Contrastive Learning", Eq. 2.
    """

    def __init__(self, scale=20.0, name="supervised_contrastive"):
        super().__init__(name=name)
        self.scale = scale

    def call(self, y_true, y_pred) -> Tensor:
        labels, vectors = tf.reshape(y_true, [-1]), tf.cast(y_pred, tf.float32)
        similarity = self.scale * tf.matmul(vectors, vectors, transpose_b=True)  # [B, B]
        others = tf.logical_not(tf.eye(tf.shape(vectors)[0], dtype=tf.bool))
        others &= (labels >= 0)[None, :]  # not rows of padding
        same = others & (labels[:, None] == labels[None, :])
        total = tf.reduce_logsumexp(tf.where(others, similarity, FORBIDDEN), axis=1)  # [B]
        losses = tf.where(same, total[:, None] - similarity, 0.0)
        count = tf.reduce_sum(tf.cast(same, tf.float32), axis=1)  # [B]
        return tf.reduce_sum(losses, axis=1) / tf.maximum(count, 1.0)
