"""A dense layer whose activation is faster in training."""

import keras
from keras import ops

from keras_transformer.layers.activation_gradients import in_training
from keras_transformer.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, which computes its activation by `in_training` while it is trained.

    Args:
        units: Number of output features.
        activation: A function; `None` means linear.
        **kwargs: The other arguments of `keras.layers.Dense`.

    Call arguments:
        inputs: `[..., D]`, floating.
        training: Whether the layer is being trained. `None`: whether the layer around it is.

    Returns:
        `[..., units]`.
    """

    def call(self, inputs, training=None) -> Tensor:  # noqa: D102
        activation = in_training(self.activation, training)
        if activation is self.activation:
            return super().call(inputs, training=training)
        x = ops.matmul(inputs, self.kernel)
        return activation(x if self.bias is None else ops.add(x, self.bias))

    def quantize(self, mode=None, type_check=True, config=None) -> None:
        """Quantises the layer like one of Keras, which refuses subclasses of its own layer."""
        super().quantize(mode, type_check=False, config=config)
