"""Pipelines of models that read images, and that of image classification."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.tasks.attention import CLASS
from keras_transformer.tasks.image_classification.codec import ImageCodec, encoded_image
from keras_transformer.tasks.image_classification.files import ImageSize
from keras_transformer.tasks.image_classification.model import ImageClassifier
from keras_transformer.tasks.single_pass.labels import Classification
from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class ImageAttention:
    """Attention weights of the class token for one image.

    Args:
        pixels: The image as the model gets it, `[H, W, C]`, uint8.
        label: The label that the model predicts.
        weights: Array `[layers, heads, R, Q]`, float32, for patches in R rows and Q columns. The
            remaining weight, up to a sum of 1, is on the class tokens.
        kind: `"class"`.
        truncated: Always `False`: images are not cut.
    """

    pixels: np.ndarray
    label: str
    weights: np.ndarray
    kind: str = CLASS
    truncated: bool = False


def image_attention(image_classifier, image) -> ImageAttention:
    """Returns the `ImageAttention` of a model for an image.

    Args:
        image_classifier: An `ImageClassificationPipeline` whose model has a class token.
        image: A path, the bytes of a file, or an array `[H, W, C]` of uint8.

    Raises:
        ValueError: If the model has no class token, or the image cannot be read.
    """
    model = image_classifier.model
    if not model.config.head.has_class_token:
        raise ValueError(
            "the model must have a class token whose attention can be shown: "
            f'`pooling = "class"`. Received: pooling={model.config.head.pooling!r}.'
        )
    pixels = image_classifier.read(image)
    weights = model.attention_weights(tf.constant(pixels[None], tf.float32))
    first = model.config.leading_tokens
    layers = np.stack(
        [tf.cast(weight, tf.float32).numpy()[0, :, 0, first:] for weight in weights.values()]
    )  # [layers, heads, R * Q], of the class token
    patches = layers.reshape(*layers.shape[:2], *model.config.input.grid)
    return ImageAttention(pixels, image_classifier([image])[0], patches)


class ImagePass(SinglePass):
    """A trained model in use that answers in one pass about an image.

    Args:
        model: The model, or a list of several; see `Pipeline`.

    Attributes:
        size: The `ImageSize` that images must have.
    """

    request = ("images",)

    def __init__(self, model: keras.Model | Sequence[keras.Model]):
        super().__init__(model)
        self.size = ImageSize.of(self.model.config)
        self.codec = self.make_codec()
        self.check_models()

    def make_codec(self) -> Any:
        """Returns the codec for images of the model's `size`."""
        return self.codec_class(self.size)

    def check_inputs(self, inputs: Tensor) -> list[bytes]:  # noqa: D102
        images = enumerate(super().check_inputs(inputs), start=1)
        return [self._encoded(image, number) for number, image in images]

    def answer_prepared(self, inputs: list[bytes]) -> list:  # noqa: D102
        return super().answer_batch(inputs)

    def answer_batch(self, images: Tensor) -> list:
        """Returns a `Result` for each image of a list, computed as one batch."""
        return super().answer_batch([self._encoded(image) for image in images])

    def _encoded(self, image, number=1):
        """Returns an image as the bytes of a file, after checking it like `read`."""
        encoded = encoded_image(image) if isinstance(image, (str, os.PathLike, bytes)) else None
        if encoded is None:  # an array
            self.read(image, number)
            return encoded_image(image)
        self.size.check(encoded, f"image {number}" if isinstance(image, bytes) else image)
        return encoded

    def read(self, image: Tensor, number: int = 1) -> np.ndarray:
        """Returns the pixels that the model gets: an array `[H, W, C]`, uint8, of its size.

        Args:
            image: A path, the bytes of a file, or an array.
            number: Number of the image, counted from 1, for errors.
        """
        if isinstance(image, (str, os.PathLike)):
            return self.size.read(image)
        if isinstance(image, bytes):
            return self.size.from_bytes(image, f"image {number}")
        return self.size.from_array(image, f"image {number}")


class ImageClassificationPipeline(ImagePass):
    """A trained `ImageClassifier` in use.

    Args:
        model: An `ImageClassifier`, or a list of several; see `Pipeline`.

    Raises:
        TypeError: If `model` is not an `ImageClassifier`.
        ValueError: If several models differ in labels or in image size.

    Attributes:
        size: The `ImageSize` that images must have.

    Example:
        from keras_transformer.pipelines import ImageClassificationPipeline
        ImageClassificationPipeline.from_run("runs/digits")(["seven.png"])
    """

    task = "image_classification"
    model_class = ImageClassifier
    output = "label"
    codec_class = ImageCodec

    def make_codec(self) -> ImageCodec:  # noqa: D102
        return ImageCodec(self.size, self.model.config.head.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the probabilities."""
        return self.codec.labels

    def classify(self, images: Sequence, batch_size: int = 64) -> list[Classification]:
        """Returns a `Classification` for each image of a list.

        Args:
            images: List of paths of PNG or JPEG files, of the bytes of such files, or of arrays
                `[H, W, C]` of uint8. All are resized and cropped as the configuration requires.
            batch_size: Number of images classified at a time.

        Raises:
            TypeError: If `images` is not a list.
            ValueError: If an image cannot be read or has another size; the error names it.
        """
        return self.answer(self.codec.check(images), batch_size=batch_size)

    def attention(self, image: Tensor) -> dict[str, ImageAttention]:
        """Returns the attention weights of the class token for an image.

        Args:
            image: A path, the bytes of a file, or an array `[H, W, C]` of uint8.

        Returns:
            Dictionary from `"class"` to an `ImageAttention` with all layers and heads.

        Raises:
            ValueError: If the model has no class token, the pipeline is an ensemble, or the image
                cannot be read.
        """
        self.require_one("have no attention weights in common")
        return {CLASS: image_attention(self, image)}
