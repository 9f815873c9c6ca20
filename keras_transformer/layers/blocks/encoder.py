"""The encoder: a stack of self-attention and feed-forward networks (section 3.1, Fig. 1 left)."""

from typing import Any

import keras

from keras_transformer.arguments import with_options
from keras_transformer.layers.attending import ConfiguredLayer
from keras_transformer.layers.blocks.block import Block
from keras_transformer.layers.blocks.options import (
    OPTIONS,
    block_options,
    split_block_options,
    split_options,
)
from keras_transformer.layers.blocks.stack import Stack
from keras_transformer.tensors import Shape, Tensor

OF_BLOCK = block_options("cross_attention")
OF_ENCODER = {name: field for name, field in OPTIONS.items() if name != "cross_attention"}


class EncoderCall(ConfiguredLayer):
    """Mixin with the `call` of an encoder and of its blocks."""

    def build(self, x_shape: Shape, attention_mask_shape: Shape | None = None) -> None:  # noqa: D102
        self._build(x_shape)

    def call(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        options = {
            "return_attention_scores": return_attention_scores,
            "training": training,
            "mask": mask,
        }
        return self._run(x, attention_mask=attention_mask, **options)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "causal": self.causal}


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OF_BLOCK)
class EncoderBlock(EncoderCall, Block):
    """An encoder block: self-attention and a feed-forward network.

    Both have a residual connection and a norm.

    Args:
        num_heads: Number of attention heads; left out without attention, and if `mixer` is an
            object that has it.
        d_ff: Width inside the feed-forward network, in features; left out with
            `feed_forward="none"`.
        causal: Whether each position attends only to itself and earlier positions, as in a language
            model.
        **options: The options of `BlockConfig` and the position options of `StackConfig`, and
            `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, S, D]`, floating.
        attention_mask: Boolean `[B, S, S]`, `True` where a position (second axis) may attend to
            another (third axis); B and the first S may be 1. `None` allows everything.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether dropout is active.
        mask: Boolean `[B, S]`, `True` for positions that are not padding; combined with
            `attention_mask`. `None`: the mask that Keras attached to `x`, if any.

    Returns:
        `[B, S, D]`; with `return_attention_scores`, a pair of this and `{"self_attention": [B, H,
        S, S]}`.

    Example:
        >>> import keras
        >>> from keras_transformer import EncoderBlock
        >>> block = EncoderBlock(num_heads=4, d_ff=64)
        >>> block(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    options = tuple(OF_BLOCK)

    def __init__(
        self,
        num_heads: int | None = None,
        d_ff: int | None = None,
        causal: bool = False,
        **arguments: Any,
    ):
        arguments.update(num_heads=num_heads, d_ff=d_ff)
        config, own = split_block_options(arguments, OF_BLOCK)
        super().__init__(config, causal=causal, **own)


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OF_ENCODER)
class Encoder(EncoderCall, Stack):
    """A stack of `EncoderBlock`s.

    Args:
        num_layers: Number of blocks.
        num_heads: Number of attention heads; left out without attention, and if `mixer` is an
            object that has it.
        d_ff: Width inside the feed-forward networks, in features; left out with
            `feed_forward="none"`.
        causal: Whether each position attends only to itself and earlier positions, as in a language
            model. Such a stack can `step` through positions like a decoder.
        **options: The options of `BlockConfig` and `StackConfig`, and `name`, `dtype` and
            `trainable` as in every Keras layer.

    Call arguments:
        x: Embedded source, `[B, S, D]`, floating.
        attention_mask: Boolean `[B, S, S]`; see `EncoderBlock`.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether dropout is active.
        mask: Boolean `[B, S]`; see `EncoderBlock`.

    Returns:
        The memory `[B, S, D]`; with `return_attention_scores`, a pair of this and a dictionary of
        attention weights: `"block_0/self_attention"` and so on with `[B, H, S, S]`.

    Example:
        >>> import keras
        >>> from keras_transformer import Encoder
        >>> Encoder(num_layers=2, num_heads=4, d_ff=64)(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    block_class = EncoderBlock
    options = tuple(OF_ENCODER)

    def __init__(
        self,
        num_layers: int,
        num_heads: int | None = None,
        d_ff: int | None = None,
        causal: bool = False,
        **arguments: Any,
    ):
        arguments.update(num_layers=num_layers, num_heads=num_heads, d_ff=d_ff)
        config, own = split_options(arguments, OF_ENCODER)
        super().__init__(config, causal=causal, **own)
