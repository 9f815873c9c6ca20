"""The decoder: self-attention, attention to the memory and feed-forward (section 3.1, Fig. 1)."""

import keras

from keras_transformer.layers.block import Block, split_arguments
from keras_transformer.layers.stack import Stack


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderBlock(Block):
    """Causal self-attention, attention to the memory, then a feed-forward network.

    Args:
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward network, in features.
        **arguments: The other fields of `BlockConfig`, and `name`, `dtype` and `trainable` as in
            every Keras layer.

    Call arguments:
        x: Target side, `[B, T, D]`, floating.
        memory: Output of the encoder, `[B, S, D]`, floating.
        allowed: Boolean `[B, T]`, or `[B, T, T]` with 1 in place of B or of the first T: which
            target positions may be attended to. Later ones never are. Padding after a target needs
            no mask.
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
        `{"self_attention": [B, H, T, T], "cross_attention": [B, H, T, S]}`.

    Example:
        >>> import keras
        >>> from keras_transformer import DecoderBlock
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> DecoderBlock(num_heads=4, d_ff=64)(x, memory).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    causal = cross = True

    def __init__(self, num_heads, d_ff, **arguments):
        config, own = split_arguments({"num_heads": num_heads, "d_ff": d_ff, **arguments})
        super().__init__(config, **own)

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
class Decoder(Stack):
    """A stack of `DecoderBlock`s.

    Args:
        num_layers: Number of blocks.
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward networks, in features.
        **arguments: The other fields of `BlockConfig`, and `name`, `dtype` and `trainable`.

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
        `"block_0/self_attention"`, `"block_0/cross_attention"` and so on to `[B, H, T, T or S]`.

    Example:
        >>> import keras
        >>> from keras_transformer import Decoder
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> Decoder(num_layers=2, num_heads=4, d_ff=64)(x, memory).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    block_class = DecoderBlock

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
