"""An image classifier in use: images to labels with their probabilities."""

import os

from keras_transformer.models.image_classifier import ImageClassifier
from keras_transformer.tasks.attention import CLASS
from keras_transformer.tasks.images.attention import image_attention
from keras_transformer.tasks.images.codec import ImageCodec
from keras_transformer.tasks.images.files import ImageSize
from keras_transformer.tasks.single_pass.pipeline import SinglePass


class ImageRecognizer(SinglePass):
    """A trained `ImageClassifier`.

    Args:
        model: An `ImageClassifier`, or a list of several: see `Pipeline`.

    Raises:
        TypeError: If it is another model.
        ValueError: If several have other labels or sizes of images.

    Attributes:
        size: The `ImageSize` that images must have.

    Example:
        from keras_transformer import ImageRecognizer
        ImageRecognizer.from_run("runs/digits")(["seven.png"])
    """

    task = "image_classification"
    model_class = ImageClassifier
    request = ("images",)
    output = "label"
    codec_class = ImageCodec

    def __init__(self, model):
        super().__init__(model)
        self.size = ImageSize.of(self.model.config)
        self.codec = ImageCodec(self.size, self.model.config.labels)
        self.check_models()

    @property
    def labels(self):
        """Names of the classes, in the order of the probabilities."""
        return self.codec.labels

    def classify(self, images, batch_size=64):
        """Returns a `Classification` for each of a list of images.

        Args:
            images: List of paths of PNG or JPEG files, of the bytes of such files, or of arrays
                `[H, W, C]` of uint8.
            batch_size: Images at a time.

        Raises:
            TypeError: If `images` is not a list.
            ValueError: If an image cannot be read or has another size; it is named.
        """
        return self.answer(images, batch_size)

    def answer(self, images, batch_size=64):
        """Returns what `classify` returns."""
        images = enumerate(self.codec.check(images), start=1)
        return super().answer([self.read(image, number) for number, image in images], batch_size)

    def answer_batch(self, images):
        """Returns a `Classification` for each of a list of images, as one batch."""
        return super().answer_batch([self.read(image) for image in images])

    def attention(self, image):
        """Returns what the class token attends to in an image.

        Args:
            image: A path, the bytes of a file, or an array `[H, W, C]` of uint8.

        Returns:
            Dictionary from `"class"` to an `ImageAttention`, with every layer and head.

        Raises:
            ValueError: If the model has no class token, there are several models, or the image
                cannot be read.
        """
        self.require_one("have no attention of their own")
        return {CLASS: image_attention(self, image)}

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
