"""A learned factor for each feature of a sublayer's output."""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_positive
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class LayerScale(keras.Layer):
    """Multiplies each feature by a learned factor, before the residual connection.

    Args:
        initial: Value of all factors before training, above 0.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[..., D]`, floating.

    Returns:
        A tensor of the same shape and dtype.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers.layer_scale import LayerScale
        >>> LayerScale(0.5)(np.ones((1, 2), "float32")).numpy().tolist()
        [[0.5, 0.5]]

    Differs from the paper, which has no such factors.

    Reference: Touvron et al. (2021), "Going deeper with Image Transformers", section 2.1.
    """

    def __init__(self, initial: float, **kwargs: Any):
        super().__init__(**kwargs)
        check_positive("initial", initial)
        self.initial = initial

    def build(self, x_shape: Shape) -> None:  # noqa: D102
        self.scale = self.add_weight(
            shape=(x_shape[-1],),
            initializer=keras.initializers.Constant(self.initial),
            name="scale",
        )

    def call(self, x: Tensor) -> Tensor:  # noqa: D102
        return x * ops.cast(self.scale, x.dtype)

    def compute_output_shape(self, x_shape: Shape) -> Shape:  # noqa: D102
        return x_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "initial": self.initial}
