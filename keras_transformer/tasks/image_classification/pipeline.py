"""Pipelines of models that read images, and that of image classification."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.attention import CLASS
from keras_transformer.tasks.image_classification.codec import ImageCodec
from keras_transformer.tasks.image_classification.model import ImageClassifier
from keras_transformer.tasks.images.pipeline import ImagePass
from keras_transformer.tasks.single_pass.labels import Classification
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
