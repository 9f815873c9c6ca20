"""The base of trainings on images and their labels."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.fields import Field, Images
from keras_transformer.tensors import Tensor
from keras_transformer.training.tasks.task import Training


class ImageTraining(Training):
    """Training on images and their labels, with shifts as data augmentation.

    A batch is (images [B, H, W, C] float32, labels [B] int32); labels are -1 in rows of padding.
    """

    pad_id = -1

    @property
    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {"image": Images(*self.config.input.shape), "label": self.label_field()}

    def label_field(self) -> Field:
        """Returns the `Field` of the labels."""
        raise NotImplementedError

    def variation(
        self, settings
    ) -> Callable[[Tensor, dict[str, Tensor]], dict[str, Tensor]] | None:
        """Returns a function that shifts images by up to `settings.shift` pixels: see `shifted`."""
        if not settings.shift:
            return None

        def move(draws, columns):
            return {**columns, "image": shifted(draws, columns["image"], settings.shift)}

        return move

    def assemble(self, image, label) -> tuple:  # noqa: D102
        return tf.cast(image, tf.float32), label

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each image, and 0 for rows that pad a replica's batch."""
        return tf.cast(tf.greater_equal(labels, 0), tf.float32)


def shifted(draws, images, limit) -> Tensor:
    """Shifts every image at random in both directions, and repeats the pixels at its edges.

    Args:
        draws: Random numbers from 0 to 1, `[B, 2]`: one for each direction.
        images: Images, `[B, H, W, C]`.
        limit: Largest shift, in pixels.
    """
    shifts = tf.cast(tf.floor(draws * (2 * limit + 1)), tf.int32) - limit  # [B, 2]
    for axis in (1, 2):
        length = images.shape[axis]
        indices = tf.expand_dims(tf.range(length), 0) - shifts[:, axis - 1 : axis]  # [B, length]
        indices = tf.clip_by_value(indices, 0, length - 1)
        images = tf.gather(images, indices, axis=axis, batch_dims=1)
    return images
