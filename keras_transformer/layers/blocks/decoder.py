"""The decoder: self-attention, attention to the memory and feed-forward (section 3.1, Fig. 1).

With an SSRU in place of the self-attention it is that of Kim et al. (2019).
"""

import keras

from keras_transformer.config.arguments import with_options
from keras_transformer.layers.blocks.block import Block
from keras_transformer.layers.blocks.options import (
    OPTIONS,
    block_options,
    split_block_options,
    split_options,
)
from keras_transformer.layers.blocks.stack import Stack
from keras_transformer.layers.call_checks import check_mask_of_positions

OF_DECODER_BLOCK = block_options()


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OF_DECODER_BLOCK)
class DecoderBlock(Block):
    """Causal self-attention, attention to the memory, then a feed-forward network.

    Args:
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward network, in features.
        **options: The options of `BlockConfig` and the positions of `StackConfig`, and `name`,
            `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: Target side, `[B, T, D]`, floating.
        memory: Output of the encoder, `[B, S, D]`, floating.
        allowed: Boolean `[B, T]`, or `[B, T, T]` with 1 in place of B or of the first T: which
            target positions may be attended to. Later ones never are. Padding after a target needs
            no mask. With an SSRU `[B, T]` or `[B, 1, T]`.
        memory_allowed: Boolean `[B, S]`, `True` where a position of the memory is real; or
            `[B, T, S]`, or 1 in place of B or T. `None` allows everything.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, joined with `allowed`. `None`: the mask that Keras attached to `x`,
            if it did.
        memory_mask: Boolean `[B, S]`, joined with `memory_allowed`. `None`: the mask that Keras
            attached to `memory`, if it did.

    Returns:
        `[B, T, D]`; with `return_weights` a pair of that and
        `{"self_attention": [B, H, T, T], "cross_attention": [B, H, T, S]}`, of an SSRU without the
        first.

    Example:
        >>> import keras
        >>> from keras_transformer import DecoderBlock
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> DecoderBlock(num_heads=4, d_ff=64)(x, memory).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    causal = cross = True
    without_memory = "`EncoderBlock(..., causal=True)`"

    options = tuple(OF_DECODER_BLOCK)

    def __init__(self, num_heads, d_ff, **arguments):
        arguments.update(num_heads=num_heads, d_ff=d_ff)
        config, own = split_block_options(arguments, OF_DECODER_BLOCK)
        super().__init__(config, **own)

    def checked_arguments(self, given):  # noqa: D102
        if self.stack.autoregression == "ssru":
            check_mask_of_positions(given.get("allowed"), self)
        return super().checked_arguments(given)

    def build(self, x_shape, memory_shape, allowed_shape=None, memory_allowed_shape=None):  # noqa: D102
        self._build(x_shape, memory_shape)

    def call(  # noqa: D102
        self,
        x,
        memory,
        allowed=None,
        memory_allowed=None,
        return_weights=False,
        training=None,
        mask=None,
        memory_mask=None,
    ):
        return self._run(
            x, memory, allowed, memory_allowed, return_weights, training, mask, memory_mask
        )


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OPTIONS)
class Decoder(Stack):
    """A stack of `DecoderBlock`s.

    Args:
        num_layers: Number of blocks.
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward networks, in features.
        **options: The options of `BlockConfig` and `StackConfig`, and `name`, `dtype` and
            `trainable` as in every Keras layer.

    Call arguments:
        x: Embedded target, `[B, T, D]`, floating.
        memory: Output of the encoder, `[B, S, D]`, floating.
        allowed: Boolean `[B, T]` or `[B, T, T]`; see `DecoderBlock`.
        memory_allowed: Boolean `[B, S]` or `[B, T, S]`; see `DecoderBlock`.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`; see `DecoderBlock`.
        memory_mask: Boolean `[B, S]`; see `DecoderBlock`.

    Returns:
        `[B, T, D]`; with `return_weights` a pair of that and a dictionary from
        `"block_0/self_attention"`, `"block_0/cross_attention"` and so on to `[B, H, T, T or S]`;
        SSRUs have none.

    Example:
        >>> import keras
        >>> from keras_transformer import Decoder
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> Decoder(num_layers=2, num_heads=4, d_ff=64)(x, memory).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    block_class = DecoderBlock
    causal = True
    without_memory = "`Encoder(..., causal=True)`"
    options = tuple(OPTIONS)

    def __init__(self, num_layers, num_heads, d_ff, **arguments):
        arguments.update(num_layers=num_layers, num_heads=num_heads, d_ff=d_ff)
        config, own = split_options(arguments)
        super().__init__(config, **own)

    def checked_arguments(self, given):  # noqa: D102
        if self.config.autoregression == "ssru":
            check_mask_of_positions(given.get("allowed"), self)
        return super().checked_arguments(given)

    def build(self, x_shape, memory_shape, allowed_shape=None, memory_allowed_shape=None):  # noqa: D102
        self._build(x_shape, memory_shape)

    def call(  # noqa: D102
        self,
        x,
        memory,
        allowed=None,
        memory_allowed=None,
        return_weights=False,
        training=None,
        mask=None,
        memory_mask=None,
    ):
        return self._run(
            x,
            memory,
            allowed,
            memory_allowed,
            return_weights=return_weights,
            training=training,
            mask=mask,
            memory_mask=memory_mask,
        )
