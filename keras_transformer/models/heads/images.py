"""Pooling over the patches of an image and the class tokens before them."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_count
from keras_transformer.models.heads.pooling import Pooling
from keras_transformer.tensors import Shape, Tensor


def make_image_pooling(config, policy) -> keras.Layer:
    """Returns the layer for the `pooling` of a head, in which class tokens precede the patches."""
    kind = config.head.pooling
    if kind == "class_mean":
        return ClassAndMean(config.leading_tokens, dtype=policy, name="pooling")
    return Pooling("first" if kind == "class" else kind, dtype=policy, name="pooling")


@keras.saving.register_keras_serializable(package="keras_transformer")
class ClassAndMean(keras.Layer):
    """The output for the class token, followed by the mean of the outputs for the patches.

    Args:
        leading_tokens: Number of tokens before the patches; the first one is the class token.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: Output of an encoder, `[B, leading_tokens + P, D]`, floating.

    Returns:
        `[B, 2 * D]`.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models.heads.images import ClassAndMean
        >>> x = np.array([[[9.0], [1.0], [3.0]]], "float32")
        >>> ClassAndMean(leading_tokens=1)(x).numpy().tolist()
        [[9.0, 2.0]]

    Reference: Oquab et al. (2024), "DINOv2", section 7.1 (linear evaluation).
    """

    def __init__(self, leading_tokens: int, **kwargs: Any):
        super().__init__(**kwargs)
        check_count("leading_tokens", leading_tokens)
        self.leading_tokens = leading_tokens

    def call(self, x: Tensor) -> Tensor:  # noqa: D102
        patches = ops.cast(x[:, self.leading_tokens :], "float32")  # [B, P, D]
        mean = ops.cast(ops.mean(patches, axis=1), x.dtype)
        return ops.concatenate([x[:, 0], mean], axis=-1)  # [B, 2 * D]

    def compute_output_shape(self, x_shape: Shape) -> Shape:  # noqa: D102
        width = x_shape[-1]
        return x_shape[0], None if width is None else 2 * width

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "leading_tokens": self.leading_tokens}
