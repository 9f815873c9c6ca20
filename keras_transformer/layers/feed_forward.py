"""Position-wise feed-forward network (section 3.3)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer import activations
from keras_transformer.checks import check_count, check_flag, check_rate
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dense import Dense
from keras_transformer.layers.dropout import Dropout
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(CompositeLayer):
    """Two dense layers with an activation in between, applied to each position separately.

    `FFN(x) = max(0, x W_1 + b_1) W_2 + b_2`

    Differs from the paper: `gated=True` adds a third dense layer, which gates the hidden features,
    `FFN(x) = (activation(x W_g) * (x W_1)) W_2`, as in Llama and T5 1.1 (Shazeer, 2020, "GLU
    Variants Improve Transformer"). This takes 50 % more parameters.

    Args:
        d_ff: Width of the hidden layer, in features.
        activation: Activation of the hidden layer, or of the gate: the name of a Keras activation,
            such as `"gelu"`; `"gelu_tanh"`; or a function registered with Keras, or its name.
        dropout: Dropout rate after the activation. The paper does not mention it.
        use_bias: Whether the dense layers have a bias, as in the paper.
        gated: Whether a gate multiplies the hidden features.
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
        use_bias: bool = True,
        gated: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("d_ff", d_ff)
        check_rate("dropout", dropout)
        check_flag("use_bias", use_bias)
        check_flag("gated", gated)
        self.d_ff = d_ff
        self.activation_name = activations.name_of(activation)
        self.activation = activations.get(self.activation_name)
        self.dropout_rate = dropout
        self.use_bias = use_bias
        self.gated = gated
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self)
        return {}

    def build(self, x_shape: Shape) -> None:  # noqa: D102
        self.widths = {"x": x_shape[-1]}
        options = {"use_bias": self.use_bias, "dtype": self.dtype_policy}
        activation = None if self.gated else self.activation
        self.inner = Dense(self.d_ff, activation, name="inner", **options)
        self.inner.build(x_shape)
        if self.gated:
            self.gate = Dense(self.d_ff, self.activation, name="gate", **options)
            self.gate.build(x_shape)
        self.outer = keras.layers.Dense(x_shape[-1], name="outer", **options)
        self.outer.build((*x_shape[:-1], self.d_ff))

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:  # noqa: D102
        flat = ops.reshape(x, (-1, x.shape[-1]))  # [N, D]
        inner = self.kernels.dense(self.inner, flat)  # [N, F]
        if self.gated:
            inner = self.kernels.dense(self.gate, flat) * inner  # [N, F]
        inner = self.dropout(inner, training=training)  # [N, F]
        outer = self.kernels.dense(self.outer, inner)  # [N, D]
        return ops.reshape(outer, ops.shape(x))  # [..., D]

    def step(self, x: Tensor) -> Tensor:
        """Returns the output for one position of each hypothesis, `[B, N, D]`, without dropout."""
        return self(x, training=False)

    def compute_output_shape(self, x_shape: Shape) -> Shape:  # noqa: D102
        return x_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "activation": self.activation_name,
            "dropout": self.dropout_rate,
            "use_bias": self.use_bias,
            "gated": self.gated,
        }
