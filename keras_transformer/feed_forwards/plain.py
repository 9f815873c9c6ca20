"""The feed-forward network of the paper."""

from __future__ import annotations

from keras_transformer.arguments import option
from keras_transformer.feed_forwards.network import Network
from keras_transformer.lazy_keras import keras
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Plain(Network):
    """Two dense layers with an activation in between, `max(0, x W_1 + b_1) W_2 + b_2`.

    Args:
        **options: See `help(Plain)`.

    Reference: Vaswani et al. (2017), section 3.3, Eq. 2.
    """

    kind = "plain"

    bias: bool = option(True, "Adds a bias to the dense layers, as in the paper.")

    def build(self, layer: keras.Layer, width: int) -> None:  # noqa: D102
        layer.add_dense("inner", layer.d_ff, width, self.bias, activated=True)
        layer.add_dense("outer", width, layer.d_ff, self.bias)

    def call(self, layer: keras.Layer, x: Tensor, training: bool | None = None) -> Tensor:  # noqa: D102
        inner = layer.project(layer.inner, x)  # [N, F]
        return layer.project(layer.outer, layer.drop(inner, training))  # [N, D]
