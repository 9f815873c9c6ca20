"""The dilated convolution of ByteNet."""

from __future__ import annotations

import dataclasses

from keras_transformer.arguments import option
from keras_transformer.checks import Count
from keras_transformer.lazy_keras import keras, ops
from keras_transformer.mixers.convolution import Convolution
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class DilatedConvolution(Convolution):
    """Residual block of ByteNet around a dilated convolution.

    A causal layer reads the position itself and `width - 1` before it, `dilation` apart; otherwise
    the position is in the middle. Padding is read as zeros, wherever it is.

    The output is `expand(n(convolution(n(reduce(n(x))))))`, in which `n(x) = relu(LayerNorm(x))`,
    `reduce` halves the number of features and `expand` doubles it. From block to block of a stack
    the dilation doubles, 1, 2, 4, 8, 16, and then starts again: five causal blocks of width 3 reach
    62 positions back.

    Args:
        **options: See `help(DilatedConvolution)`.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import DilatedConvolution, Mixing
        >>> Mixing(DilatedConvolution(dilation=4))(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Differs from the paper: a block of this package normalises as well, where its `norm` says, and
        has a feed-forward network.

    Raises:
        ValueError: If `max_dilation` is below `dilation`.

    Reference: Kalchbrenner et al. (2016), "Neural Machine Translation in Linear Time", sections 3.4
        to 3.6 and Fig. 3, left.
    """

    kind = "dilated_convolution"
    about = (
        "the residual block of ByteNet, which contains a dilated convolution; the dilation doubles "
        "from block to block (Kalchbrenner et al., 2016)"
    )

    dilation: Count = option(
        1, "Distance between two positions that a position reads, in the first block of a stack."
    )
    max_dilation: Count = option(
        16,
        "Largest distance. The block after a block with this distance begins with "
        "`dilation` again.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_dilation < self.dilation:
            raise ValueError(
                "`max_dilation` must be at least `dilation`. Received: "
                f"dilation={self.dilation}, max_dilation={self.max_dilation}."
            )

    def at(self, number: int) -> DilatedConvolution:  # noqa: D102
        dilations = (self.max_dilation // self.dilation).bit_length()
        return dataclasses.replace(self, dilation=self.dilation * 2 ** (number % dilations))

    def build(self, layer: keras.Layer, width: int) -> None:  # noqa: D102
        inner = _inner(width)
        layer.add_norm("input_norm", width)
        layer.add_dense("reduce", inner, width)
        layer.add_norm("reduced_norm", inner)
        layer.add_dense("convolution", inner, self.width * inner)
        layer.add_norm("output_norm", inner)
        layer.add_dense("expand", width, inner)

    def call(self, layer: keras.Layer, x: Tensor, real: Tensor | None = None) -> Tensor:  # noqa: D102
        inner = _reduced(layer, x)  # [B, T, D / 2]
        return _expanded(layer, self.taps(layer, inner, real, self.dilation), x)

    def state_shapes(self, width: int) -> tuple[tuple[int, ...], ...]:  # noqa: D102
        return ((self.reach(self.dilation), _inner(width)),)

    def step(  # noqa: D102
        self, layer: keras.Layer, x: Tensor, state: tuple[Tensor, ...], index: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        taps, after = self.next_taps(layer, _reduced(layer, x), state[0], self.dilation)
        return _expanded(layer, taps, x), (after,)


def _inner(width):
    """Returns the number of features of the convolution."""
    return max(1, width // 2)


def _reduced(layer, x):
    """Returns the features that the convolution reads, `[B, T, D / 2]`."""
    batch, length = ops.shape(x)[:2]
    flat = ops.reshape(x, (-1, x.shape[-1]))  # [B * T, D]
    flat = layer.project(layer.reduce, ops.relu(layer.input_norm(flat)))  # [B * T, D / 2]
    flat = ops.relu(layer.reduced_norm(flat))
    return ops.reshape(flat, (batch, length, flat.shape[-1]))


def _expanded(layer, taps, x):
    """Returns the output of the convolution and what follows it, in the shape of the input `x`."""
    inner = ops.relu(layer.output_norm(layer.project(layer.convolution, taps)))  # [B * T, D / 2]
    return ops.reshape(layer.project(layer.expand, inner), ops.shape(x))
