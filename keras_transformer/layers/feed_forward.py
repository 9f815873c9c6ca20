"""Position-wise feed-forward network (section 3.3), and its dense layer with fast gradients."""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer import activations
from keras_transformer.activations import gelu_tanh, silu
from keras_transformer.checks import check_count, check_rate
from keras_transformer.feed_forwards import Network
from keras_transformer.gradients import custom_gradient
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.tensors import Shape, Tensor
from keras_transformer.variants import plain


def in_training(
    activation: Callable[[Tensor], Tensor], training: bool | None
) -> Callable[[Tensor], Tensor]:
    """Returns the form of an activation that is faster in training, or the activation itself.

    Both forms of GELU have one. It is computed in at least float32, in which processors compute the
    error function six times as fast as in bfloat16. Its slope is computed together with its value,
    so that one tensor is kept for the gradient, not one for each operation. The results differ from
    those of Keras by rounding. SiLU is that of Keras, which keeps one tensor as well.

    Args:
        activation: A function of one tensor, such as `keras.activations.gelu`.
        training: Whether the layer is being trained. Otherwise, the result is the activation.

    Example:
        >>> import keras
        >>> from keras_transformer.layers.feed_forward import in_training
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


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(CompositeLayer):
    """Two dense layers with an activation in between, applied to each position separately.

    `FFN(x) = max(0, x W_1 + b_1) W_2 + b_2`

    Differs from the paper: `kind` also names other networks, such as `Gated`.

    Args:
        d_ff: Width of the hidden layer, in features.
        activation: Activation of the hidden layer, or of the gate: the name of a Keras activation,
            such as `"gelu"`; `"gelu_tanh"`; or a function registered with Keras, or its name.
        dropout: Dropout rate after the activation. The paper does not mention it.
        kind: Kind of network: a `Network`, such as `Gated(bias=False)`, or its name.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[..., D]`, floating.
        training: Whether dropout is active.

    Returns:
        `[..., D]`.

    Raises:
        ValueError: If `d_ff` is not positive.

    Example:
        >>> import keras
        >>> from keras_transformer import FeedForward
        >>> FeedForward(d_ff=64)(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.3, Eq. 2.
    """

    def __init__(
        self,
        d_ff: int,
        activation: str | Callable = "relu",
        dropout: float = 0.0,
        kind: Network | str | dict[str, Any] = "plain",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("d_ff", d_ff)
        check_rate("dropout", dropout)
        self.d_ff = d_ff
        self.activation_name = activations.name_of(activation)
        self.activation = activations.get(self.activation_name)
        self.dropout_rate = dropout
        self.kind = Network.make(kind, "kind")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self)
        return {}

    def build(self, x_shape: Shape) -> None:  # noqa: D102
        self.widths = {"x": x_shape[-1]}
        self.kind.build(self, x_shape[-1])

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:  # noqa: D102
        flat = ops.reshape(x, (-1, x.shape[-1]))  # [N, D]
        return ops.reshape(self.kind.call(self, flat, training), ops.shape(x))  # [..., D]

    def add_dense(
        self, name: str, units: int, width: int, bias: bool = True, activated: bool = False
    ) -> None:
        """Adds a dense layer as an attribute; see `Network.build`.

        Args:
            name: Name of the attribute and of the layer.
            units: Number of output features.
            width: Number of input features.
            bias: Whether it has a bias.
            activated: Whether the activation follows.
        """
        options = {"use_bias": bias, "dtype": self.dtype_policy, "name": name}
        layer = Dense(units, self.activation if activated else None, **options)
        layer.build((None, width))
        setattr(self, name, layer)

    def project(self, layer: keras.Layer, x: Tensor) -> Tensor:
        """Returns the output of a dense layer for `[N, D]`."""
        return self.kernels.dense(layer, x)

    def drop(self, x: Tensor, training: bool | None = None) -> Tensor:
        """Returns hidden features after dropout."""
        return self.dropout(x, training=training)

    def compute_output_shape(self, x_shape: Shape) -> Shape:  # noqa: D102
        return x_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "activation": self.activation_name,
            "dropout": self.dropout_rate,
            "kind": plain(self.kind),
        }
