"""The Simpler Simple Recurrent Unit, which replaces self-attention in decoders of small models."""

from __future__ import annotations

from keras_transformer.lazy_keras import keras, ops
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class SSRU(Mixer):
    """Simpler Simple Recurrent Unit: a causal recurrence with a forget gate for each feature.

    `f_t = sigmoid(x_t W_f + b_f)`, `c_t = f_t * c_(t-1) + (1 - f_t) * (x_t W)` with `c_(-1) = 0`,
    and the output is `relu(c_t)`.

    The cost of a position does not depend on the number of earlier ones: the cache of a search is
    a single state of D features. The states are float32 even under mixed-precision policies.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import SSRU, Mixing
        >>> Mixing(SSRU())(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Kim et al. (2019), "From Research to Production and Back: Ludicrously Fast Neural
        Machine Translation".
    """

    kind = "ssru"
    about = (
        "a causal recurrence with a forget gate for each feature, for decoders (Kim et al., 2019)"
    )
    is_causal = True

    def build(self, layer: keras.Layer, width: int) -> None:  # noqa: D102
        layer.add_dense("candidate", width, width, bias=False)
        layer.add_dense("forget", width, width)

    def call(self, layer: keras.Layer, x: Tensor, real: Tensor | None = None) -> Tensor:  # noqa: D102
        return _output(layer, _states(layer, x, real))

    def read(  # noqa: D102
        self, layer: keras.Layer, x: Tensor, real: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        states = _states(layer, x, real)  # [B, T, D]
        last = ops.sum(states[:, -1:], axis=1, keepdims=True)  # zeros if there is none
        return _output(layer, states), (last,)

    def state_shapes(self, width: int) -> tuple[tuple[int, ...], ...]:  # noqa: D102
        return ((width,),)

    def step(  # noqa: D102
        self, layer: keras.Layer, x: Tensor, state: tuple[Tensor, ...], index: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        keep, add = _gates(layer, x)  # [B, N, D] twice
        states = keep * state[0] + add  # [B, N, D]
        return _output(layer, states), (states,)


def _states(layer, x, real):
    """Returns the states of all positions, `[B, T, D]`."""
    from keras_transformer.scan import linear_recurrence

    keep, add = _gates(layer, x)  # [B, T, D] twice
    if real is not None:  # padding does not change the state
        keep, add = ops.where(real, keep, 1.0), ops.where(real, add, 0.0)
    return linear_recurrence(keep, add)


def _gates(layer, x):
    """Returns the fraction of the state to keep and the term to add, `[B, T, D]` each."""
    flat = ops.reshape(x, (-1, x.shape[-1]))  # [B * T, D]
    shape, dtype = ops.shape(x), layer.state_dtype
    candidate = ops.cast(layer.project(layer.candidate, flat), dtype)  # [B * T, D]
    keep = ops.sigmoid(ops.cast(layer.project(layer.forget, flat), dtype))  # [B * T, D]
    return ops.reshape(keep, shape), ops.reshape((1 - keep) * candidate, shape)


def _output(layer, states):
    return ops.cast(ops.relu(states), layer.compute_dtype)
