"""Training of image classification."""

import keras

from keras_transformer.fields import Field, Labels
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.tasks.images import ImageTraining


class ImageClassificationTraining(ImageTraining):
    """Training on images and their labels with the smoothed cross-entropy of the label.

    A label is its index in the `labels` of the configuration.
    """

    def label_field(self) -> Field:  # noqa: D102
        return Labels(self.config.head.labels)

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return ClassCrossEntropy(settings.label_smoothing)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
