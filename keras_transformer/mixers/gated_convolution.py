"""The convolution with gates of ConvS2S."""

from __future__ import annotations

from keras_transformer.lazy_keras import keras, ops
from keras_transformer.mixers.convolution import Convolution
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class GatedConvolution(Convolution):
    """Convolution of ConvS2S, with a gated linear unit.

    With `[v, g] = split([x_(t-k+1), ..., x_t] W + b)` the output is `v * sigmoid(g)`. In a causal
    layer these are the position t and the `width - 1` before it; otherwise t is in the middle.
    Padding is read as zeros, wherever it is.

    Args:
        **options: See `help(GatedConvolution)`.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import GatedConvolution, Mixing
        >>> Mixing(GatedConvolution(width=5))(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Differs from the paper: the block adds the input and normalises the sum, where ConvS2S
        multiplies the sum by `sqrt(0.5)` and normalises the weights. It has dropout on the output
        instead of the input, and a feed-forward network. Cross-attention is that of the block.

    Reference: Gehring et al. (2017), "Convolutional Sequence to Sequence Learning", section 3.2;
        Dauphin et al. (2017), "Language Modeling with Gated Convolutional Networks", for the unit.
    """

    kind = "gated_convolution"
    about = "the convolution of ConvS2S, with a gated linear unit (Gehring et al., 2017)"

    def build(self, layer: keras.Layer, width: int) -> None:  # noqa: D102
        layer.add_dense("convolution", 2 * width, self.width * width)

    def call(self, layer: keras.Layer, x: Tensor, real: Tensor | None = None) -> Tensor:  # noqa: D102
        return _gated(layer, self.taps(layer, x, real), x)

    def state_shapes(self, width: int) -> tuple[tuple[int, ...], ...]:  # noqa: D102
        return ((self.reach(), width),)

    def step(  # noqa: D102
        self, layer: keras.Layer, x: Tensor, state: tuple[Tensor, ...], index: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        taps, after = self.next_taps(layer, x, state[0])
        return _gated(layer, taps, x), (after,)


def _gated(layer, taps, x):
    """Returns the output in the shape of the input `x`."""
    value, gate = ops.split(layer.project(layer.convolution, taps), 2, axis=-1)
    return ops.reshape(value * ops.sigmoid(gate), ops.shape(x))
