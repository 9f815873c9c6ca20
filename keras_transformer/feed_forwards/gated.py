"""A feed-forward network with a gate, as in Llama and T5 1.1."""

from __future__ import annotations

from keras_transformer.arguments import option
from keras_transformer.feed_forwards.network import Network
from keras_transformer.lazy_keras import keras
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Gated(Network):
    """A third dense layer gates the hidden features, `(activation(x W_g) * (x W_1)) W_2`.

    It takes 50 % more parameters than the network of the paper.

    Args:
        **options: See `help(Gated)`.

    Reference: Shazeer (2020), "GLU Variants Improve Transformer".
    """

    kind = "gated"

    bias: bool = option(True, "Adds a bias to the dense layers; false in Llama and T5 1.1.")

    def build(self, layer: keras.Layer, width: int) -> None:  # noqa: D102
        layer.add_dense("inner", layer.d_ff, width, self.bias)
        layer.add_dense("gate", layer.d_ff, width, self.bias, activated=True)
        layer.add_dense("outer", width, layer.d_ff, self.bias)

    def call(self, layer: keras.Layer, x: Tensor, training: bool | None = None) -> Tensor:  # noqa: D102
        inner = layer.project(layer.gate, x) * layer.project(layer.inner, x)  # [N, F]
        return layer.project(layer.outer, layer.drop(inner, training))  # [N, D]
