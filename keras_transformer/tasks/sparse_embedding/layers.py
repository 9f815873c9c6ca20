"""`SparsePooling`, the weights of a text's sparse vector from its logits of the vocabulary."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_choice
from keras_transformer.tensors import Shape, Tensor

POOLINGS = ("max", "sum")
SATURATIONS = {"log": 1, "double_log": 2}  # how often the logarithm is taken


@keras.saving.register_keras_serializable(package="keras_transformer")
class SparsePooling(keras.Layer):
    """Weights `w_v = max_s log(1 + relu(x_sv))` of the tokens of a vocabulary.

    Args:
        pooling: `"max"` or `"sum"` over the positions s of a text that are not padding.
        saturation: `"log"`, or `"double_log"`, where the logarithm is taken twice:
            `log(1 + log(1 + relu(x)))`.

    Call arguments:
        logits: Logits of the vocabulary, floating `[B, S, V]`.
        padding_mask: Boolean `[B, 1, S]`, `True` for tokens that are not padding. `None`: no
            padding.

    Returns:
        Weights `[B, V]`, at least 0; zeros if all tokens of a text are padding.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.tasks.sparse_embedding.layers import SparsePooling
        >>> logits = np.array([[[1.0, -1.0], [0.5, -2.0], [9.0, 9.0]]], "float32")
        >>> SparsePooling()(logits, np.array([[[True, True, False]]])).numpy().round(2)
        array([[0.69, 0.  ]], dtype=float32)

    Reference: Formal et al. (2021), "SPLADE", Eq. 1 (`"sum"`), and "SPLADE v2", Eq. 6 (`"max"`);
        `"double_log"` as in Geng et al. (2025), arXiv 2504.14839.
    """

    def __init__(self, pooling="max", saturation="log", **kwargs):
        super().__init__(**kwargs)
        check_choice("pooling", pooling, POOLINGS)
        check_choice("saturation", saturation, tuple(SATURATIONS))
        self.pooling, self.saturation = pooling, saturation

    def call(self, logits, padding_mask=None) -> Tensor:  # noqa: D102
        if padding_mask is not None:
            real = ops.transpose(padding_mask, (0, 2, 1))  # [B, S, 1]
            logits = ops.where(real, logits, 0.0)  # whose weight is 0
        if self.pooling == "sum":
            return ops.sum(self._saturated(logits), axis=1)  # [B, V]
        return self._saturated(ops.max(logits, axis=1))  # the same: the function never falls

    def _saturated(self, x):
        x = ops.relu(x)
        for _ in range(SATURATIONS[self.saturation]):
            x = ops.log1p(x)
        return x

    def compute_output_shape(self, logits_shape, padding_mask_shape=None) -> Shape:  # noqa: D102
        return logits_shape[0], logits_shape[-1]

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        own = {"pooling": self.pooling, "saturation": self.saturation}
        return {**super().get_config(), **own}
