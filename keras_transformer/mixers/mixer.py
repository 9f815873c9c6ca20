"""`Mixer`, the interface of what reads the other positions in a block."""

from __future__ import annotations

from keras_transformer.lazy_keras import keras
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant


class Mixer(Variant):
    """Base class of mixers, the sublayers of a block that read other positions than their own.

    `SelfAttention` stands for a `MultiHeadSelfAttention`. Any other mixer computes a `Mixing` layer
    whose state does not depend on the query: in a search, each hypothesis has a state of fixed
    size. A subclass needs a `kind`, which is its name in configurations and the name of its
    sublayer in a block. It holds no weights: it adds them to the layer in `build`. For example, a
    mean of all positions so far is

        def call(self, layer, x, real=None):
            x = x if real is None else ops.where(real, x, 0.0)
            return ops.cumsum(x, axis=1) / count_of(x, real)

    Attributes:
        attends: Whether it is self-attention, with positions and windows.
        is_causal: Whether a position depends only on itself and earlier ones.
    """

    option = "mixer"
    package = "keras_transformer.mixers"
    default_kind = "self_attention"
    attends = False
    is_causal = False

    def build(self, layer: keras.Layer, width: int) -> None:
        """Adds weights to a `Mixing` layer for inputs of `width` features."""

    def call(self, layer: keras.Layer, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Returns the output `[B, T, D]`.

        Args:
            layer: The `Mixing` layer.
            x: `[B, T, D]`.
            real: Boolean `[B, T, 1]` or `[1, T, 1]`, `False` for padding; `None`: no padding.
        """
        raise NotImplementedError

    def empty_state(self, layer: keras.Layer, batch: Tensor, width: int) -> tuple[Tensor, ...]:
        """Returns the state before the first position: tensors `[B, N, ...]`.

        Args:
            layer: The `Mixing` layer.
            batch: Number of sentences B, an integer or a scalar tensor.
            width: Number of hypotheses per sentence N, a Python integer.
        """
        raise NotImplementedError

    def step(
        self, layer: keras.Layer, x: Tensor, state: tuple[Tensor, ...], index: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the output for one further position, and the new state.

        Args:
            layer: The `Mixing` layer.
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            state: The state before it.
            index: Index of the position, counted from 0: a scalar integer.
        """
        raise NotImplementedError
