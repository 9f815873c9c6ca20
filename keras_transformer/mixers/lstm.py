"""The long short-term memory."""

from __future__ import annotations

from keras_transformer.lazy_keras import ops
from keras_transformer.mixers.recurrent import Recurrent
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class LSTM(Recurrent):
    """Long short-term memory with a forget gate, in both directions unless a layer is causal.

    With `i, f, g, o = split(x_t W + h_(t-1) R + b)`, the state is
    `c_t = sigmoid(f) * c_(t-1) + sigmoid(i) * tanh(g)` and the output
    `h_t = sigmoid(o) * tanh(c_t)`. Weights are in the order of `keras.layers.LSTM`; the bias of the
    forget gate begins with 1.

    Args:
        **options: See `help(LSTM)`.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import LSTM, Mixing
        >>> Mixing(LSTM())(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Hochreiter and Schmidhuber (1997), "Long Short-Term Memory"; Gers et al. (2000),
        "Learning to Forget", for the forget gate.
    """

    kind = "lstm"
    about = (
        "long short-term memory, in both directions in an encoder (Hochreiter and Schmidhuber, "
        "1997)"
    )
    gates = 4
    count = 2

    def first_bias(self, shape: tuple[int, ...], dtype: str | None = None) -> Tensor:  # noqa: D102
        units = shape[0] // self.gates
        begin, end = ops.zeros((units,), dtype), ops.zeros((2 * units,), dtype)
        return ops.concatenate([begin, ops.ones((units,), dtype), end])

    def update(self, x: Tensor, r: Tensor, before: tuple) -> tuple[tuple, tuple]:  # noqa: D102
        i, f, g, o = ops.split(x + r, 4, axis=-1)
        i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
        c = f * before[1] + i * g
        bounded = ops.tanh(c)
        return (o * bounded, c), (i, f, g, o, bounded)

    def changes(self, upstream: tuple, before: tuple, kept: tuple) -> tuple[Tensor, Tensor, tuple]:  # noqa: D102
        i, f, g, o, bounded = kept
        h, c = upstream
        c = c + h * o * (1 - bounded * bounded)
        by_gates = ops.concatenate(
            [
                c * g * i * (1 - i),
                c * before[1] * f * (1 - f),
                c * i * (1 - g * g),
                h * bounded * o * (1 - o),
            ],
            axis=-1,
        )
        return by_gates, by_gates, (ops.zeros_like(h), c * f)
