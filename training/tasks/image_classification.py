"""The training of image classification."""

import functools

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.tasks.classification import SPACES
from keras_transformer.training.data.arrays import ArrayCorpus
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.tasks.task import Training


class ImageClassificationTraining(Training):
    """Images and their labels; the loss is the smoothed cross-entropy of the label.

    A batch is (images [B, H, W, C] float32, labels [B] int32); a label is its place among the
    `labels` of the configuration, and -1 in rows of padding.
    """

    pad_id = -1

    def corpus(self, data, split, settings):
        """Returns the `ArrayCorpus` of a split; in training images move by `settings.shift`."""
        places = {label: place for place, label in enumerate(self.config.labels)}
        images, labels = [], []
        for image, name in data.rows(split).as_numpy_iterator():
            label = name.decode("utf-8", "replace").strip(SPACES)
            if label not in places:
                raise ValueError(
                    f"the {split} split of the data: a label must be one of the training data's "
                    f"labels, {', '.join(places)}. Received: {label!r}."
                )
            images.append(image)
            labels.append(places[label])
        vary = functools.partial(shifted, most=settings.shift) if settings.shift else None
        columns = [np.array(images, np.uint8), np.array(labels, np.int32)]
        return ArrayCorpus(columns, self.assemble, vary)

    def assemble(self, images, labels):  # noqa: D102
        return tf.cast(images, tf.float32), labels

    def loss(self, settings):  # noqa: D102
        return ClassCrossEntropy(settings.label_smoothing)

    def metrics(self):  # noqa: D102
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def weigh(self, inputs, labels):
        """Returns 1 for each image, and 0 for the rows that pad a replica's batch."""
        return tf.cast(tf.greater_equal(labels, 0), tf.float32)


def shifted(draws, images, labels, most):
    """Moves every image by up to some pixels down and right, or up and left.

    What comes in is the pixels at the edge, again.

    Args:
        draws: Random numbers from 0 to 1, `[B, 2]`.
        images: `[B, H, W, C]`.
        labels: `[B]`, returned as they are.
        most: Pixels.
    """
    moves = tf.cast(tf.floor(draws * (2 * most + 1)), tf.int32) - most  # [B, 2]
    for axis in (1, 2):
        length = images.shape[axis]
        places = tf.expand_dims(tf.range(length), 0) - moves[:, axis - 1 : axis]  # [B, length]
        places = tf.clip_by_value(places, 0, length - 1)
        images = tf.gather(images, places, axis=axis, batch_dims=1)
    return images, labels
