"""One block of the Transformer (Fig. 1): two or three sublayers, each with a `Residual`."""

import typing

import keras

from keras_transformer.checks import check_flag
from keras_transformer.layers import positions
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.attention import MultiHeadSelfAttention
from keras_transformer.layers.blocks.residual import Residual
from keras_transformer.layers.cross_attention import MultiHeadCrossAttention
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.normalization import make_norm
from keras_transformer.layers.recurrence.ssru import SSRU


class Step(typing.NamedTuple):
    """A block, or a stack of them, at one position.

    Attributes:
        x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
        cache: The cache with this position in it.
        weights: Those of the attention to the memory, `[B, H, N, S]`; of a stack, a tuple of those
            of its blocks. `None` where there is no memory, or nobody asked for them.
    """

    x: typing.Any
    cache: tuple
    weights: typing.Any


class Block(AttendingLayer):
    """Self-attention or an SSRU, attention to a memory if `cross`, and a feed-forward network.

    Args:
        config: The `StackConfig` of its stack.
        causal: Whether a position attends only to itself and earlier ones. `None`: as the class
            has it.
        number: Number of the block in its stack, counting from 0.
        position: The `Position` of its self-attention. `None`: the one that `config` describes.
        **kwargs: `name`, `dtype`, `trainable` and `kernels` as in every layer of this package.

    Attributes:
        stack: The `StackConfig`.
        config: The `BlockConfig`.
        causal: Whether a position attends only to itself and earlier ones.
        cross: Whether it also attends to a memory.

    Reference: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    causal = cross = False

    def __init__(self, config, *, causal=None, number=0, position=None, **kwargs):
        super().__init__(**kwargs)
        own = config.of_block(number)
        self.stack, self.config, self.window = config, config.block, own.window
        self.position = positions.of_attention(own) if position is None else position
        self.normalizes_first = number > 0 or config.first_norm is not False
        if causal is not None:
            check_flag("causal", causal)
            self.causal = causal

    @classmethod
    def from_stack(cls, config, **kwargs):
        """Returns a block with the configuration of its stack as it is.

        Args:
            config: The `StackConfig`.
            **kwargs: `causal`, for an `EncoderBlock`, `number`, `position`, `name`, `dtype`,
                `trainable` and `kernels`.
        """
        layer = cls.__new__(cls)
        Block.__init__(layer, config, **kwargs)
        return layer

    def _build(self, x_shape, memory_shape=None):
        shapes = {"x": x_shape, "memory": memory_shape} if self.cross else {"x": x_shape}
        self.check_shapes(**shapes)
        self._add(self._make_history(), self._make_first_norm, x_shape)
        if self.cross:
            attention = MultiHeadCrossAttention(**self._attention_arguments("cross_attention"))
            self._add(attention, self._make_norm, x_shape, memory_shape)
        self._add(self._make_feed_forward(), self._make_norm, x_shape)
        self.dropout = Dropout(self.config.dropout, dtype=self.dtype_policy, name="dropout")

    def _add(self, sublayer, norm_of, x_shape, *memory_shape):
        """Builds a sublayer and its norm, and keeps both under their names."""
        norm = norm_of(f"{sublayer.name}_norm")
        sublayer.build(x_shape, *memory_shape)
        norm.build(x_shape)
        for layer in (sublayer, norm):
            setattr(self, layer.name, layer)

    def _make_history(self):
        if self.is_recurrent:
            return SSRU(dtype=self.dtype_policy, kernels=self.kernels, name="ssru")
        return MultiHeadSelfAttention(
            causal=self.causal,
            position=self.position,
            window=self.window,
            **self._attention_arguments("self_attention"),
        )

    def _make_feed_forward(self):
        config = self.config
        return FeedForward(
            config.d_ff,
            config.activation,
            config.activation_dropout,
            config.feed_forward_bias,
            config.is_gated,
            dtype=self.dtype_policy,
            kernels=self.kernels,
            name="feed_forward",
        )

    def _attention_arguments(self, name):
        config = self.config
        return {
            "num_heads": config.num_heads,
            "num_key_value_heads": config.num_key_value_heads,
            "d_k": config.d_k,
            "d_v": config.d_v,
            "dropout": config.attention_dropout,
            "use_bias": config.biased_projections,
            "score": config.score,
            "dtype": self.dtype_policy,
            "kernels": self.kernels,
            "name": name,
        }

    def _make_norm(self, name):
        return make_norm(self.config, self.dtype_policy, name)

    def _make_first_norm(self, name):
        if self.normalizes_first:
            return self._make_norm(name)
        return keras.layers.Identity(dtype=self.dtype_policy, name=name)

    @property
    def is_recurrent(self):
        """Whether an SSRU reads earlier positions, and no self-attention."""
        return self.stack.autoregression == "ssru"

    def history(self):
        """Returns the sublayer that reads other positions of `x`.

        It has `empty_cache`, `extended_cache` and `step`. No property: Keras would file the
        weights under its name.
        """
        return self.ssru if self.is_recurrent else self.self_attention

    def residual(self, sublayer):
        """Returns the `Residual` of a sublayer, with its norm and the block's dropout."""
        norm = getattr(self, f"{sublayer.name}_norm")
        return Residual(sublayer, norm, self.dropout, self.config.is_pre_norm)

    def _run(self, x, memory, allowed, memory_allowed, return_weights, training, mask, memory_mask):
        """Figure 1; the arguments are those of a call of `DecoderBlock`."""
        asked, weights = {"return_weights": True} if return_weights else {}, {}
        options = {"training": training, "mask": mask, **({} if self.is_recurrent else asked)}
        x, weights["self_attention"] = self.residual(self.history())(x, allowed, **options)
        if self.cross:
            options = {"training": training, "memory_mask": memory_mask, **asked}
            x, weights["cross_attention"] = self.residual(self.cross_attention)(
                x, memory, memory_allowed, **options
            )
        x, _ = self.residual(self.feed_forward)(x, training=training)  # [B, T, D]
        weights = {name: tensor for name, tensor in weights.items() if tensor is not None}
        return (x, weights) if return_weights else x

    def step(
        self,
        x,
        cache,
        index,
        memory_heads=None,
        memory_allowed=None,
        allowed=None,
        return_weights=False,
    ):
        """The block at one position, with what earlier positions left in the cache.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            cache: Key and value heads of the self-attention, see `MultiHeadSelfAttention.step`; or
                the state of the SSRU, see `SSRU.step`.
            index: Number of the position, counting from 0; scalar integer below `L`.
            memory_heads: Key and value heads of the memory, each `[B, G, S, K]`: hypotheses share
                the memory of their sentence. `None` where there is no memory.
            memory_allowed: Boolean `[B, 1, S]`.
            allowed: Boolean `[B, N, L * N]`; see `MultiHeadSelfAttention.step`. `None` with an
                SSRU.
            return_weights: Whether the `Step` has the weights of the attention to the memory.

        Returns:
            A `Step`.
        """
        weights = None
        x, cache = self.residual(self.history()).step(x, cache, index, allowed)  # [B, N, D]
        if self.cross:
            x, weights = self.residual(self.cross_attention).step(
                x, memory_heads, memory_allowed, return_weights
            )
        x, _ = self.residual(self.feed_forward).step(x)  # [B, N, D]
        return Step(x, cache, weights)

    def get_config(self):
        """Returns the constructor's arguments."""
        flat = self.stack.to_flat()
        return {**super().get_config(), **{name: flat[name] for name in self.options}}
