"""The decoder: self-attention, cross-attention and feed-forward network (section 3.1, Fig. 1).

Another mixer, such as an SSRU (Kim et al., 2019), may take the place of self-attention.
"""

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

OF_DECODER_BLOCK = block_options()


class DecoderCall(ConfiguredLayer):
    """Mixin with the `call` of a decoder and of its blocks."""

    causal = cross = True

    def build(
        self,
        x_shape: Shape,
        memory_shape: Shape,
        attention_mask_shape: Shape | None = None,
        memory_attention_mask_shape: Shape | None = None,
    ) -> None:  # noqa: D102
        self._build(x_shape, memory_shape)

    def call(  # noqa: D102
        self,
        x: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        memory_attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        return self._run(
            x,
            memory,
            attention_mask,
            memory_attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            mask=mask,
            memory_mask=memory_mask,
        )


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OF_DECODER_BLOCK)
class DecoderBlock(DecoderCall, Block):
    """A decoder block: causal self-attention, cross-attention and a feed-forward network.

    Each of the three has a residual connection and a norm.

    Args:
        num_heads: Number of attention heads; left out if `mixer` or `cross_attention` is an
            object that has it.
        d_ff: Width inside the feed-forward network, in features; left out with
            `feed_forward="none"`.
        **options: The options of `BlockConfig` and the position options of `StackConfig`, and
            `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: Target sequence, `[B, T, D]`, floating.
        memory: Output of the encoder, `[B, S, D]`, floating.
        attention_mask: Boolean `[B, T, T]`, `True` where a target position may attend to another;
            B and the first T may be 1. With another mixer, `[B, 1, T]`. It is combined with the
            causal mask, so padding at the end of a target needs no mask.
        memory_attention_mask: Boolean `[B, T, S]`, `True` where a target position may attend to a
            memory position; B and T may be 1. `None` allows everything.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, `True` for positions that are not padding; combined with
            `attention_mask`. `None`: the mask that Keras attached to `x`, if any.
        memory_mask: Boolean `[B, S]`, `True` for positions that are not padding; combined with
            `memory_attention_mask`. `None`: the mask that Keras attached to `memory`, if any.

    Returns:
        `[B, T, D]`; with `return_attention_scores`, a pair of this and the dictionary
        `{"self_attention": [B, H, T, T], "cross_attention": [B, H, T, S]}`, which lacks the first
        entry with another mixer.

    Example:
        >>> import keras
        >>> from keras_transformer import DecoderBlock
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> DecoderBlock(num_heads=4, d_ff=64)(x, memory).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    without_memory = "`EncoderBlock(..., causal=True)`"
    options = tuple(OF_DECODER_BLOCK)

    def __init__(self, num_heads: int | None = None, d_ff: int | None = None, **arguments: Any):
        arguments.update(num_heads=num_heads, d_ff=d_ff)
        config, own = split_block_options(arguments, OF_DECODER_BLOCK)
        super().__init__(config, **own)


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OPTIONS)
class Decoder(DecoderCall, Stack):
    """A stack of `DecoderBlock`s.

    Args:
        num_layers: Number of blocks.
        num_heads: Number of attention heads; left out if `mixer` or `cross_attention` is an
            object that has it.
        d_ff: Width inside the feed-forward networks, in features; left out with
            `feed_forward="none"`.
        **options: The options of `BlockConfig` and `StackConfig`, and `name`, `dtype` and
            `trainable` as in every Keras layer.

    Call arguments:
        x: Embedded target, `[B, T, D]`, floating.
        memory: Output of the encoder, `[B, S, D]`, floating.
        attention_mask: Boolean `[B, T, T]`; see `DecoderBlock`.
        memory_attention_mask: Boolean `[B, T, S]`; see `DecoderBlock`.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`; see `DecoderBlock`.
        memory_mask: Boolean `[B, S]`; see `DecoderBlock`.

    Returns:
        `[B, T, D]`; with `return_attention_scores`, a pair of this and a dictionary of attention
        weights: `"block_0/self_attention"` and so on with `[B, H, T, T]`, except with another
        mixer, and `"block_0/cross_attention"` and so on with `[B, H, T, S]`.

    Example:
        >>> import keras
        >>> from keras_transformer import Decoder
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> Decoder(num_layers=2, num_heads=4, d_ff=64)(x, memory).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    block_class = DecoderBlock
    without_memory = "`Encoder(..., causal=True)`"
    options = tuple(OPTIONS)

    def __init__(
        self,
        num_layers: int,
        num_heads: int | None = None,
        d_ff: int | None = None,
        **arguments: Any,
    ):
        arguments.update(num_layers=num_layers, num_heads=num_heads, d_ff=d_ff)
        config, own = split_options(arguments)
        super().__init__(config, **own)
