"""An image classifier in use: images to labels with their probabilities."""

import os

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.models.image_classifier import ImageClassifier
from keras_transformer.tasks.classifier import to_classifications
from keras_transformer.tasks.images.files import ImageSize
from keras_transformer.tasks.pipeline import Pipeline


class ImageRecognizer(Pipeline):
    """A trained `ImageClassifier`.

    Args:
        model: An `ImageClassifier`.

    Raises:
        TypeError: If it is another model.

    Attributes:
        labels: The labels.
        size: The `ImageSize` that images must have.

    Example:
        from keras_transformer import ImageRecognizer
        ImageRecognizer.from_run("runs/digits")(["seven.png"])
    """

    task = "image_classification"
    model_class = ImageClassifier
    output = "label"

    def __init__(self, model):
        super().__init__(model)
        self.labels = model.config.labels
        self.size = ImageSize.of(model.config)
        images = tf.TensorSpec([None, *model.config.shape], tf.float32, name="images")
        self._recognize = tf.function(self.probabilities, input_signature=[images], autograph=False)

    def probabilities(self, images):
        """Returns the probabilities of all labels, `[B, C]`, in a graph.

        Args:
            images: Pixels from 0 to 255, `[B, H, W, C]`, floating or integer.
        """
        return tf.nn.softmax(self.model(tf.cast(images, tf.float32), training=False))

    def __call__(self, images, batch_size=64):
        """Returns the labels of a list of images, in order."""
        return [result.label for result in self.classify(images, batch_size)]

    def classify(self, images, batch_size=64):
        """Returns a `Classification` for each of a list of images.

        Args:
            images: List of paths of PNG or JPEG files, of the bytes of such files, or of arrays
                `[H, W, C]` of uint8.
            batch_size: Images at a time.

        Raises:
            TypeError: If `images` is no list.
            ValueError: If an image cannot be read or has another size; it is named.
        """
        check_count("batch_size", batch_size)
        if isinstance(images, (str, bytes, os.PathLike)) or not hasattr(images, "__iter__"):
            raise TypeError(f"`images` must be a list of images. Received: {images!r}.")
        images, results = list(images), []
        for begin in range(0, len(images), batch_size):
            results += self.classify_batch(images[begin : begin + batch_size], begin)
        return results

    def classify_batch(self, images, first=0):
        """Returns a `Classification` for each of a list of images, as one batch.

        Args:
            images: As in `classify`.
            first: Number of the first, for an error.
        """
        if not images:
            return []
        batch = np.stack([self.read(image, first + n + 1) for n, image in enumerate(images)])
        probabilities = self._recognize(tf.constant(batch, tf.float32))
        return to_classifications(self.labels, probabilities, np.zeros(len(batch), bool))

    def read(self, image, number=1):
        """Returns an image as an array `[H, W, C]`, uint8.

        Args:
            image: A path, the bytes of a file, or an array.
            number: Its number, counted from 1, for an error.
        """
        if isinstance(image, (str, os.PathLike)):
            return self.size.read(image)
        if isinstance(image, bytes):
            return self.size.from_bytes(image, f"image {number}")
        return self.size.checked(image, f"image {number}")
