"""Attention of the class token to the patches of an image."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.attention import CLASS


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
