"""Convolutions as mixers: which positions they read, and what they keep while decoding."""

from __future__ import annotations

import functools
from typing import Annotated

from keras_transformer.arguments import option
from keras_transformer.checks import check_count
from keras_transformer.lazy_keras import keras, ops
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Convolution(Mixer):
    """Base class of convolutions, each output of which depends on `width` positions.

    They are `dilation` positions apart. A causal layer reads the position itself and earlier ones.
    Otherwise the position is in the middle; if `width` is even, there is one more before it than
    after it.

    Padding is read as zeros, wherever it is, as are places before and after a text. Padding at
    either end therefore changes nothing, and padding between two tokens keeps its length: the
    tokens around it are as far apart as they stand. The state of a search is what a step still has
    to read of the positions before it.
    """

    width: Annotated[int, functools.partial(check_count, least=2)] = option(
        3, "Number of positions that a position reads, itself included."
    )

    def reach(self, dilation: int = 1) -> int:
        """Returns the distance between the first and the last position that is read."""
        return (self.width - 1) * dilation

    def taps(self, layer: keras.Layer, x: Tensor, real: Tensor | None, dilation: int = 1) -> Tensor:
        """Returns the features that each position reads, side by side, `[B * T, width * C]`.

        Args:
            layer: The `Mixing` layer.
            x: Features of each position, `[B, T, C]`.
            real: Boolean `[B, T, 1]` or `[1, T, 1]`, `False` for padding; `None`: no padding.
            dilation: Distance between two of the positions that are read.
        """
        reach = self.reach(dilation)
        before = reach if layer.causal else self.width // 2 * dilation
        if real is not None:
            x = ops.where(real, x, ops.zeros((), x.dtype))
        x = ops.pad(x, ((0, 0), (before, reach - before), (0, 0)))  # [B, T + reach, C]
        # The end counts from the last position, so that a graph may leave T open.
        read = [x[:, n : n - reach or None] for n in range(0, reach + 1, dilation)]
        joined = ops.concatenate(read, axis=-1)  # [B, T, width * C]
        return ops.reshape(joined, (-1, joined.shape[-1]))

    def next_taps(
        self, layer: keras.Layer, x: Tensor, state: Tensor, dilation: int = 1
    ) -> tuple[Tensor, Tensor]:
        """Returns the same for one further position, `[B * N, width * C]`, and the new state.

        Args:
            layer: The `Mixing` layer.
            x: Features of the position in each hypothesis, `[B, N, C]`.
            state: Features of the positions before it, `[B, N, reach, C]`.
            dilation: Distance between two of the positions that are read.
        """
        new = ops.expand_dims(ops.cast(x, state.dtype), axis=2)  # [B, N, 1, C]
        known = ops.concatenate([state, new], axis=2)  # [B, N, reach + 1, C]
        read = ops.cast(known[:, :, ::dilation], layer.compute_dtype)  # [B, N, width, C]
        return ops.reshape(read, (-1, self.width * x.shape[-1])), known[:, :, 1:]
