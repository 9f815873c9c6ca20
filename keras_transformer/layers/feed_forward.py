"""Position-wise feed-forward network (section 3.3)."""

import keras
from keras import ops

from keras_transformer.checks import check_activation, check_count, check_flag, check_rate
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(CompositeLayer):
    """Two linear maps with an activation between them, the same at every position.

    `FFN(x) = max(0, x W_1 + b_1) W_2 + b_2`

    Args:
        d_ff: Width between the two maps, in features.
        activation: Keras activation between them.
        dropout: Rate after the activation. The paper does not mention it.
        use_bias: Whether the maps have a bias, as the paper's have.
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

    def __init__(self, d_ff, activation="relu", dropout=0.0, use_bias=True, **kwargs):
        super().__init__(**kwargs)
        check_count("d_ff", d_ff)
        if activation is not None and not callable(activation):
            check_activation("activation", activation)
        check_rate("dropout", dropout)
        check_flag("use_bias", use_bias)
        self.d_ff = d_ff
        self.activation = keras.activations.get(activation)
        self.dropout_rate = dropout
        self.use_bias = use_bias
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def checked_arguments(self, given):  # noqa: D102
        check_positions(given.get("x"), "x", self)
        return {}

    def build(self, x_shape):  # noqa: D102
        self.widths = {"x": x_shape[-1]}
        options = {"use_bias": self.use_bias, "dtype": self.dtype_policy}
        self.inner = keras.layers.Dense(self.d_ff, self.activation, name="inner", **options)
        self.outer = keras.layers.Dense(x_shape[-1], name="outer", **options)
        self.inner.build(x_shape)
        self.outer.build((*x_shape[:-1], self.d_ff))

    def call(self, x, training=None):  # noqa: D102
        flat = ops.reshape(x, (-1, x.shape[-1]))  # [N, D]
        inner = self.kernels.dense(self.inner, flat)  # [N, F]
        inner = self.dropout(inner, training=training)  # [N, F]
        outer = self.kernels.dense(self.outer, inner)  # [N, D]
        return ops.reshape(outer, ops.shape(x))  # [..., D]

    def compute_output_shape(self, x_shape):  # noqa: D102
        return x_shape

    def get_config(self):  # noqa: D102
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout_rate,
            "use_bias": self.use_bias,
        }
