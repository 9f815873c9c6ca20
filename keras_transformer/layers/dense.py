"""A dense layer, and activations for training with gradients in closed form."""

import math
from collections.abc import Callable

import keras
from keras import ops

from keras_transformer.activations import gelu_tanh, silu
from keras_transformer.gradients import custom_gradient
from keras_transformer.tensors import Tensor


def in_training(
    activation: Callable[[Tensor], Tensor], training: bool | None
) -> Callable[[Tensor], Tensor]:
    """Returns the form of an activation that is faster in training, or the activation itself.

    Both forms of GELU have one. It is computed in at least float32, in which processors compute the
    error function six times as fast as in bfloat16, and its slope together with its value: one
    tensor is kept for the gradient, not one for each operation. The results differ from those of
    Keras by rounding. SiLU is that of Keras, which keeps one tensor as well.

    Args:
        activation: A function of one tensor, such as `keras.activations.gelu`.
        training: Whether the layer is being trained. Otherwise, the result is the activation.

    Example:
        >>> import keras
        >>> from keras_transformer.layers.dense import in_training
        >>> in_training(keras.activations.relu, training=True) is keras.activations.relu
        True
    """
    return FAST.get(activation, activation) if training else activation


def _with_slope(value_and_slope):
    """Returns a function of one tensor from a function that returns its value and its slope."""

    @custom_gradient
    def fast(x):
        wide = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
        value, slope = (ops.cast(tensor, x.dtype) for tensor in value_and_slope(wide))

        def gradient(upstream):
            return upstream * slope

        return value, gradient

    return fast


def _gelu(x):
    """Returns `x P` and `P + x p`, for the distribution P and density p of the normal law."""
    below = 0.5 + 0.5 * ops.erf(x * math.sqrt(0.5))
    density = ops.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return x * below, below + x * density


def _gelu_tanh(x):
    """Returns `x s` and `s + x s'`, where `s = (1 + tanh(c (x + 0.044715 x^3))) / 2`."""
    factor, cubic = math.sqrt(2 / math.pi), 0.044715
    square = x * x
    share = 0.5 + 0.5 * ops.tanh(factor * x * (1 + cubic * square))
    inner = factor * (1 + 3 * cubic * square)  # the slope inside the hyperbolic tangent
    return x * share, share + 2 * x * share * (1 - share) * inner


FAST = {
    keras.activations.gelu: _with_slope(_gelu),
    gelu_tanh: _with_slope(_gelu_tanh),
    silu: keras.activations.silu,
}


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
