"""The decoder and its key/value cache (section 3.1, Fig. 1 right)."""

import keras
from keras import ops

from keras_transformer.layers.attention import MultiHeadCrossAttention, MultiHeadSelfAttention
from keras_transformer.layers.block import Block, Stack


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderBlock(Block):
    """Causal self-attention, attention to the memory, then a feed-forward network.

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
        attention_bias: Whether the projections of the attentions have a bias.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

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

    Reference: Vaswani et al. (2017), section 3.1.
    """

    def build(self, x_shape, memory_shape, allowed_shape=None, memory_allowed_shape=None):  # noqa: D102
        self.check_shapes(x=x_shape, memory=memory_shape)
        self.self_attention = MultiHeadSelfAttention(
            causal=True, **self._attention_arguments("self_attention")
        )
        self.self_attention_norm = self._make_norm("self_attention_norm")
        self.cross_attention = MultiHeadCrossAttention(
            **self._attention_arguments("cross_attention")
        )
        self.cross_attention_norm = self._make_norm("cross_attention_norm")
        self.feed_forward = self._make_feed_forward()
        self.feed_forward_norm = self._make_norm("feed_forward_norm")
        self.dropout = self._make_dropout()
        self.self_attention.build(x_shape)
        self.cross_attention.build(x_shape, memory_shape)
        self.feed_forward.build(x_shape)
        for norm in (self.self_attention_norm, self.cross_attention_norm, self.feed_forward_norm):
            norm.build(x_shape)

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
        weights = {}

        def attend(x):
            x, weights["self_attention"] = self.self_attention(
                x, allowed, return_weights=True, training=training, mask=mask
            )
            return x

        def attend_to_memory(x):
            x, weights["cross_attention"] = self.cross_attention(
                x,
                memory,
                memory_allowed,
                return_weights=True,
                training=training,
                memory_mask=memory_mask,
            )
            return x

        x = self._sublayers(x, attend, attend_to_memory, training)
        return (x, weights) if return_weights else x

    def step(
        self, x, cache, index, memory_heads, memory_allowed=None, allowed=None, return_weights=False
    ):
        """The block at one position, with what earlier positions left in the cache.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            cache: Key and value heads of the self-attention; see `MultiHeadSelfAttention.step`.
            index: Number of the position, counting from 0; scalar integer below `L`.
            memory_heads: Key and value heads of the memory, each `[B, H, S, K]`: hypotheses share
                the memory of their sentence.
            memory_allowed: Boolean `[B, 1, S]`.
            allowed: Boolean `[B, N, L * N]`; see `MultiHeadSelfAttention.step`.
            return_weights: Whether to return the weights of the attention to the memory as well.

        Returns:
            `[B, N, D]` and the cache with this position in it; with `return_weights` the weights
            `[B, H, N, S]`, too.
        """
        caches, weights = [], []

        def attend(x):
            x, new = self.self_attention.step(x, cache, index, allowed)
            caches.append(new)
            return x

        def attend_to_memory(x):
            query = self.cross_attention.project_query(x)
            x, new = self.cross_attention.attend(query, *memory_heads, memory_allowed)
            weights.append(new)
            return x

        x = self._sublayers(x, attend, attend_to_memory, training=False)
        return (x, caches[0], weights[0]) if return_weights else (x, caches[0])

    def _sublayers(self, x, attend, attend_to_memory, training):
        def feed(x):
            return self.feed_forward(x, training=training)

        x = self.residual(x, attend, self.self_attention_norm, training)  # [B, T, D]
        x = self.residual(x, attend_to_memory, self.cross_attention_norm, training)  # [B, T, D]
        return self.residual(x, feed, self.feed_forward_norm, training)  # [B, T, D]


@keras.saving.register_keras_serializable(package="keras_transformer")
class Decoder(Stack):
    """A stack of `DecoderBlock`s.

    Args:
        num_layers: Number of blocks.
        num_heads: Attention heads.
        d_ff: Width inside the feed-forward networks, in features.
        **arguments: The other arguments of `DecoderBlock`, and `name`, `dtype` and `trainable`.

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

    Reference: Vaswani et al. (2017), section 3.1.
    """

    block_class = DecoderBlock

    def build(self, x_shape, memory_shape, allowed_shape=None, memory_allowed_shape=None):  # noqa: D102
        self._build_blocks(x_shape, memory_shape)

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
        weights = {}
        for block in self.blocks:
            x, of_block = block(
                x,
                memory,
                allowed,
                memory_allowed,
                return_weights=True,
                training=training,
                mask=mask,
                memory_mask=memory_mask,
            )
            weights.update({f"{block.name}/{name}": each for name, each in of_block.items()})
        x = self._end(x)
        return (x, weights) if return_weights else x

    def empty_cache(self, memory_heads, length, width=1):
        """Returns a cache for `length` positions: key and value heads of every block, zeros.

        Args:
            memory_heads: What `project_memory` returned; gives batch, heads and head sizes.
            length: Number of positions L, a Python integer.
            width: Number of hypotheses of a sentence N, a Python integer.

        Returns:
            For every block two tensors `[B, H, L, N * K]`.
        """
        return tuple(
            tuple(
                ops.zeros(
                    (ops.shape(heads)[0], heads.shape[1], length, width * heads.shape[3]),
                    heads.dtype,
                )
                for heads in of_block
            )
            for of_block in memory_heads
        )

    def extended_cache(self, cache, length):
        """Returns a cache for `length` more positions; those there are do not change any more.

        Every step writes the cache of its positions anew, and copies it where a runtime cannot
        write in place. Of those that are set aside it only reads.

        Args:
            cache: What `empty_cache` or a step at the last position returned.
            length: Number of positions R, a Python integer.

        Returns:
            For every block two tensors `[B, H, R, N * K]`, zeros, and two `[B, H, P, N * K]` of all
            earlier positions.
        """

        def extended(recent, past=None):
            shape = (ops.shape(recent)[0], recent.shape[1], length, recent.shape[3])
            joined = recent if past is None else ops.concatenate([past, recent], axis=2)
            return ops.zeros(shape, recent.dtype), joined

        extended_blocks = []
        for recent_key, recent_value, *past in cache:
            key, value = extended(recent_key, *past[:1]), extended(recent_value, *past[1:])
            extended_blocks.append((key[0], value[0], key[1], value[1]))
        return tuple(extended_blocks)

    def project_memory(self, memory):
        """Returns key and value heads of the memory for every block, each `[B, H, S, K]`."""
        return tuple(block.cross_attention.project_memory(memory) for block in self.blocks)

    def step(
        self, x, cache, index, memory_heads, memory_allowed=None, allowed=None, return_weights=False
    ):
        """The stack at one position.

        Args:
            x: The position in each of the N hypotheses of a sentence, embedded, `[B, N, D]`.
            cache: What `empty_cache`, `extended_cache` or the previous step returned.
            index: Number of the position, counting from 0; scalar integer.
            memory_heads: What `project_memory` returned.
            memory_allowed: Boolean `[B, 1, S]`.
            allowed: Boolean `[B, N, L * N]`; see `MultiHeadSelfAttention.step`.
            return_weights: Whether to return the weights of the attention to the memory as well.

        Returns:
            `[B, N, D]` and the cache with this position in it; with `return_weights` a tuple of the
            weights of every block `[B, H, N, S]`, too.
        """
        caches, weights = [], []
        for block, of_block, heads in zip(self.blocks, cache, memory_heads, strict=True):
            x, of_block, of_memory = block.step(
                x, of_block, index, heads, memory_allowed, allowed, return_weights=True
            )
            caches.append(of_block)
            weights.append(of_memory)
        x, cache = self._end(x), tuple(caches)
        return (x, cache, tuple(weights)) if return_weights else (x, cache)
