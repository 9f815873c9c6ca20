"""`Network`, the interface of the kinds of feed-forward networks."""

from __future__ import annotations

from keras_transformer.lazy_keras import keras
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant


class Network(Variant):
    """Base class of the kinds of feed-forward networks, which a `FeedForward` computes.

    A subclass needs a `kind`, its name in configurations. It holds no weights: in `build` it makes
    dense layers, which are attributes of the layer, and in `call` it computes with them. For
    example, a network without an activation is

        def build(self, layer, width):
            layer.add_dense("inner", layer.d_ff, width)
            layer.add_dense("outer", width, layer.d_ff)

        def call(self, layer, x, training=None):
            return layer.project(layer.outer, layer.drop(layer.project(layer.inner, x), training))

    Attributes:
        is_sublayer: Whether a block has a sublayer for it; `d_ff`, activation and dropout inside
            the network are options of such blocks only.
    """

    option = "feed_forward"
    package = "keras_transformer.feed_forwards"
    is_sublayer = True

    def build(self, layer: keras.Layer, width: int) -> None:
        """Makes the dense layers of a `FeedForward`.

        Args:
            layer: The `FeedForward`, with its `d_ff`.
            width: Number of features D of its input and its output.
        """
        raise NotImplementedError

    def call(self, layer: keras.Layer, x: Tensor, training: bool | None = None) -> Tensor:
        """Returns the output `[N, D]` for features `[N, D]`.

        Args:
            layer: The `FeedForward`.
            x: `[N, D]`, the features of all positions.
            training: Whether dropout is active.
        """
        raise NotImplementedError
