"""Pooling of an encoder's output over the tokens of a text or the patches of an image."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_choice
from keras_transformer.tensors import Shape, Tensor

KINDS = ("mean", "max", "first", "last", "attention")
FORBIDDEN = -1e4  # score of padding, within the range of float16


@keras.saving.register_keras_serializable(package="keras_transformer")
class Pooling(keras.Layer):
    """Pools the vectors of all tokens of a text into one vector.

    Args:
        kind: `"mean"` or `"max"` over the tokens that are not padding; `"first"`, the vector of the
            first token; `"last"`, that of the last one; or `"attention"`, a mean weighted by
            `softmax(x w)` with a learned `w`.

    Call arguments:
        x: Output of an encoder, `[B, S, D]`, floating.
        padding_mask: Boolean `[B, 1, S]`, `True` for tokens that are not padding. `None`: no
            padding.

    Returns:
        `[B, D]`. If all tokens of a text are padding: zeros, or with `"first"` the vector of the
        first padding token.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models.heads.pooling import Pooling
        >>> x = np.array([[[1.0], [3.0], [9.0]]], "float32")
        >>> Pooling("mean")(x, np.array([[[True, True, False]]])).numpy().tolist()
        [[2.0]]
    """

    def __init__(self, kind="mean", **kwargs):
        super().__init__(**kwargs)
        check_choice("kind", kind, KINDS)
        self.kind = kind

    def build(self, x_shape, padding_mask_shape=None) -> None:  # noqa: D102
        if self.kind == "attention":
            shape = (x_shape[-1], 1)
            self.query = self.add_weight(shape=shape, initializer="glorot_uniform", name="query")

    def call(self, x, padding_mask=None) -> Tensor:  # noqa: D102
        if padding_mask is None:
            padding_mask = ops.ones_like(x[:, None, :, 0], dtype="bool")  # [B, 1, S]
        real = ops.transpose(padding_mask, (0, 2, 1))  # [B, S, 1]
        if self.kind == "first":
            return x[:, 0]  # [B, D]
        if self.kind == "max":
            highest = ops.max(ops.where(real, x, FORBIDDEN), axis=1)  # [B, D]
            return ops.where(ops.any(real, axis=1), highest, 0.0)
        weights = ops.cast(real, "float32")  # [B, S, 1]
        if self.kind == "last":
            numbers = ops.cumsum(ops.ones_like(weights), axis=1) * weights  # from 1; padding: 0
            weights = ops.cast(numbers == ops.max(numbers, axis=1, keepdims=True), "float32")
            weights *= ops.cast(real, "float32")
        if self.kind == "attention":
            scores = ops.cast(ops.matmul(x, ops.cast(self.query, x.dtype)), "float32")  # [B, S, 1]
            if x.shape[1] != 1:  # Keras warns about a softmax over a single token
                weights *= ops.softmax(ops.where(real, scores, FORBIDDEN), axis=1)
        total = ops.sum(weights, axis=1, keepdims=True)  # [B, 1, 1]
        weights = weights / ops.maximum(total, 1e-9)
        return ops.sum(x * ops.cast(weights, x.dtype), axis=1)  # [B, D]

    def compute_output_shape(self, x_shape) -> Shape:  # noqa: D102
        return x_shape[0], x_shape[-1]

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "kind": self.kind}
