"""The encoder: self-attention and feed-forward, six times (section 3.1, Fig. 1 left)."""

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

# An encoder attends in both directions, or is causal: its blocks have a self-attention.
OF_ENCODER = {name: field for name, field in OPTIONS.items() if name != "autoregression"}
OF_ENCODER_BLOCK = block_options("autoregression")


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OF_ENCODER_BLOCK)
class EncoderBlock(Block):
    """Self-attention, then a feed-forward network, each with a residual connection and norm.

    Args:
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward network, in features.
        causal: Whether a position attends to itself and earlier ones only, as in a language model.
        **options: The options of `BlockConfig` and the positions of `StackConfig`, and `name`,
            `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, S, D]`, floating.
        allowed: Boolean `[B, S]`, `True` where a position is real; or `[B, S, S]`, or 1 in place
            of B or of the first S, `True` where a position may attend to another. `None` allows
            everything.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, S]`, `True` where a position is real, joined with `allowed`. `None`: the
            mask that Keras attached to `x`, if it did.

    Returns:
        `[B, S, D]`; with `return_weights` a pair of that and `{"self_attention": [B, H, S, S]}`.

    Example:
        >>> import keras
        >>> from keras_transformer import EncoderBlock
        >>> block = EncoderBlock(num_heads=4, d_ff=64)
        >>> block(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    options = tuple(OF_ENCODER_BLOCK)

    def __init__(self, num_heads, d_ff, causal=False, **arguments):
        arguments.update(num_heads=num_heads, d_ff=d_ff)
        config, own = split_block_options(arguments, OF_ENCODER_BLOCK)
        super().__init__(config, causal=causal, **own)

    def build(self, x_shape, allowed_shape=None):  # noqa: D102
        self._build(x_shape)

    def call(self, x, allowed=None, return_weights=False, training=None, mask=None):  # noqa: D102
        return self._run(x, None, allowed, None, return_weights, training, mask, None)

    def get_config(self):  # noqa: D102
        return {**super().get_config(), "causal": self.causal}


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(OF_ENCODER)
class Encoder(Stack):
    """A stack of `EncoderBlock`s.

    Args:
        num_layers: Number of blocks.
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward networks, in features.
        causal: Whether a position attends to itself and earlier ones only: the stack of a language
            model, which can `step` through positions as a decoder does.
        **options: The options of `BlockConfig` and `StackConfig`, and `name`, `dtype` and
            `trainable` as in every Keras layer.

    Call arguments:
        x: Embedded source, `[B, S, D]`, floating.
        allowed: Boolean `[B, S]` or `[B, S, S]`; see `EncoderBlock`.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, S]`; see `EncoderBlock`.

    Returns:
        The memory `[B, S, D]`; with `return_weights` a pair of that and a dictionary from
        `"block_0/self_attention"` and so on to `[B, H, S, S]`.

    Example:
        >>> import keras
        >>> from keras_transformer import Encoder
        >>> Encoder(num_layers=2, num_heads=4, d_ff=64)(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    block_class = EncoderBlock
    options = tuple(OF_ENCODER)

    def __init__(self, num_layers, num_heads, d_ff, causal=False, **arguments):
        arguments.update(num_layers=num_layers, num_heads=num_heads, d_ff=d_ff)
        config, own = split_options(arguments, OF_ENCODER)
        super().__init__(config, causal=causal, **own)

    def build(self, x_shape, allowed_shape=None):  # noqa: D102
        self._build(x_shape)

    def call(self, x, allowed=None, return_weights=False, training=None, mask=None):  # noqa: D102
        return self._run(x, allowed, return_weights=return_weights, training=training, mask=mask)

    def get_config(self):  # noqa: D102
        return {**super().get_config(), "causal": self.causal}
