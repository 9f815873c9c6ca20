"""The encoder: self-attention and feed-forward, six times (section 3.1, Fig. 1 left)."""

import keras

from keras_transformer.layers.attention import MultiHeadSelfAttention
from keras_transformer.layers.block import Block, Stack


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderBlock(Block):
    """Self-attention, then a feed-forward network, each with a residual connection and norm.

    Args:
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward network, in features.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the output of each sublayer (section 5.4).
        attention_dropout: Rate on the attention weights. The paper does not mention it.
        activation_dropout: Rate inside the feed-forward network. The paper does not mention it.
        activation: Keras activation of the feed-forward network.
        norm: `"post"` as in the paper, or `"pre"`.
        layer_norm_epsilon: Added to the variance in layer normalisation.
        attention_bias: Whether the projections of the attention have a bias.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

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
        >>> block = EncoderBlock(num_heads=4, d_ff=64)
        >>> block(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.1.
    """

    def build(self, x_shape, allowed_shape=None):  # noqa: D102
        self.check_shapes(x=x_shape)
        self.self_attention = MultiHeadSelfAttention(**self._attention_arguments("self_attention"))
        self.self_attention_norm = self._make_norm("self_attention_norm")
        self.feed_forward = self._make_feed_forward()
        self.feed_forward_norm = self._make_norm("feed_forward_norm")
        self.dropout = self._make_dropout()
        for sublayer in (self.self_attention, self.self_attention_norm):
            sublayer.build(x_shape)
        for sublayer in (self.feed_forward, self.feed_forward_norm):
            sublayer.build(x_shape)

    def call(self, x, allowed=None, return_weights=False, training=None, mask=None):  # noqa: D102
        weights = {}

        def attend(x):
            x, weights["self_attention"] = self.self_attention(
                x, allowed, return_weights=True, training=training, mask=mask
            )
            return x

        def feed(x):
            return self.feed_forward(x, training=training)

        x = self.residual(x, attend, self.self_attention_norm, training)  # [B, S, D]
        x = self.residual(x, feed, self.feed_forward_norm, training)  # [B, S, D]
        return (x, weights) if return_weights else x


@keras.saving.register_keras_serializable(package="keras_transformer")
class Encoder(Stack):
    """A stack of `EncoderBlock`s.

    Args:
        num_layers: Number of blocks.
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward networks, in features.
        **arguments: The other arguments of `EncoderBlock`, and `name`, `dtype` and `trainable`.

    Call arguments:
        x: Embedded source, `[B, S, D]`, floating.
        allowed: Boolean `[B, S]` or `[B, S, S]`; see `EncoderBlock`.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, S]`; see `EncoderBlock`.

    Returns:
        The memory `[B, S, D]`; with `return_weights` a pair of that and a dictionary from
        `"block_0/self_attention"` and so on to `[B, H, S, S]`.

    Reference: Vaswani et al. (2017), section 3.1.
    """

    block_class = EncoderBlock

    def build(self, x_shape, allowed_shape=None):  # noqa: D102
        self._build_blocks(x_shape)

    def call(self, x, allowed=None, return_weights=False, training=None, mask=None):  # noqa: D102
        weights = {}
        for block in self.blocks:
            x, of_block = block(x, allowed, return_weights=True, training=training, mask=mask)
            weights.update({f"{block.name}/{name}": each for name, each in of_block.items()})
        x = self._end(x)
        return (x, weights) if return_weights else x
