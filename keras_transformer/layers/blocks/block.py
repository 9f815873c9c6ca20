"""A block of the Transformer (Fig. 1): two or three sublayers with residual connections."""

import functools
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer import positions
from keras_transformer.checks import check_flag
from keras_transformer.config.stack import StackConfig
from keras_transformer.layers.attending import ConfiguredLayer
from keras_transformer.layers.attention import MultiHeadSelfAttention
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.layer_scale import LayerScale
from keras_transformer.layers.mixing import Mixing
from keras_transformer.layers.multi_head import MultiHeadCrossAttention
from keras_transformer.layers.same_position import PositionReader
from keras_transformer.tensors import Tensor
from keras_transformer.variants import given_options


class Residual(NamedTuple):
    """`norm(x + dropout(sublayer(x)))`, or `x + dropout(sublayer(norm(x)))` with `pre_norm`.

    It is not a layer: the block owns the sublayer, the norm and the dropout as attributes.

    Attributes:
        sublayer: A layer that maps `x` `[B, T, D]` to `[B, T, D]`, or to a pair of this and another
            output, such as attention weights.
        norm: The normalisation.
        dropout: The dropout on the output of the sublayer (section 5.4).
        pre_norm: Whether the input of the sublayer is normalised instead of the sum. Differs from
            the paper; training then needs no warm-up.
        scale: A `LayerScale` on the output of the sublayer. `None`: no factors, as in the paper.

    Reference: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    sublayer: Any
    norm: keras.Layer
    dropout: keras.Layer
    pre_norm: bool
    scale: keras.Layer | None = None

    def __call__(
        self, x: Tensor, *arguments: Any, training: bool | None = None, **options: Any
    ) -> tuple[Tensor, Any]:
        """Returns `[B, T, D]`, and the other output of the sublayer or `None`.

        Args:
            x: `[B, T, D]`.
            *arguments: Further arguments of the sublayer.
            training: Whether dropout is active.
            **options: Further keyword arguments of the sublayer.
        """
        change = self.sublayer(self._enter(x), *arguments, training=training, **options)
        return self._leave(x, change, training)

    def step(self, x: Tensor, *arguments: Any, **options: Any) -> tuple[Tensor, Any]:
        """Returns the same as a call, computed by the sublayer's `step` and without dropout."""
        change = self.sublayer.step(self._enter(x), *arguments, **options)
        return self._leave(x, change, training=False)

    def read(self, x: Tensor, count: Tensor | None) -> tuple[Tensor, Any]:
        """Returns the same as a call, computed by the sublayer's `read` and without dropout."""
        return self._leave(x, self.sublayer.read(self._enter(x), count), training=False)

    def read_more(
        self, x: Tensor, past: tuple[Tensor, ...], start: Tensor | None
    ) -> tuple[Tensor, Any]:
        """Returns the same as a call, computed by `read_more` of the sublayer without dropout."""
        change = self.sublayer.read_more(self._enter(x), past, start)
        return self._leave(x, change, training=False)

    def _enter(self, x):
        return self.norm(x) if self.pre_norm else x

    def _leave(self, x, change, training):
        change, other = change if isinstance(change, tuple) else (change, None)
        if self.scale is not None:
            change = self.scale(change)
        x = x + self.dropout(change, training=training)  # [B, T, D]
        return (x if self.pre_norm else self.norm(x)), other


class CachedOutput(NamedTuple):
    """The output of a block or a stack at one position.

    Attributes:
        x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
        cache: The cache including this position.
        weights: The cross-attention weights `[B, H, N, S]`; for a stack, a tuple with those of each
            block. `None` if there is no memory or the weights were not requested.
    """

    x: Tensor
    cache: tuple
    weights: Tensor | tuple[Tensor, ...] | None


class Block(ConfiguredLayer):
    """Self-attention or another mixer, cross-attention if `cross`, and a feed-forward network.

    With `feed_forward="none"` it has no feed-forward network.

    The constructor of a subclass may set `self_attention`, `cross_attention` or `feed_forward`, or
    the norm of one of them, such as `self_attention_norm`; `build` makes the layers that are not
    set.

    Args:
        config: The `StackConfig` of the block alone, see `StackConfig.of_block`.
        causal: Whether each position attends only to itself and earlier positions. `None`: the
            default of the class.
        position: The `Position` of its self-attention. `None`: the one that `config` describes.
        **kwargs: `name`, `dtype`, `trainable` and `kernels` as in every layer of this package.

    Attributes:
        cross: Whether the block also attends to a memory.

    Reference: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    cross: bool = False

    def __init__(
        self,
        config: StackConfig,
        *,
        causal: bool | None = None,
        position: positions.Position | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.config, self.mixer = config, config.mixer
        self.position = config.position_of(0) if position is None else position
        if causal is not None:
            check_flag("causal", causal)
            self.causal = causal
        if not self.cross and config.block.cross_attention is not None:
            given = given_options(config.block.cross_attention)
            raise ValueError(
                f"{', '.join(f'`{name}`' for name in given)} must be left out without attention. "
                f"Received by {self.name!r}: {config.block.cross_attention!r}, "
                f"mixer={config.mixer!r}."
            )
        if config.hides_start and not self.causal:
            raise ValueError(
                "`attends_to_start` must be left out unless `causal` is true. "
                f"Received by {self.name!r}: attends_to_start=False, causal=False."
            )
        if config.mixer.is_causal and not self.causal:
            raise ValueError(
                f"`mixer` must read both directions unless `causal` is true. Received by "
                f"{self.name!r}: mixer={config.mixer!r}, causal=False."
            )

    @classmethod
    def from_stack(cls, config: StackConfig, number: int = 0, **kwargs: Any) -> "Block":
        """Returns a block made from the configuration of its stack.

        Args:
            config: The `StackConfig`.
            number: Index of the block, counted from 0.
            **kwargs: `position`, `name`, `dtype`, `trainable` and `kernels`; for an `EncoderBlock`
                also `causal`.
        """
        layer = cls.__new__(cls)
        Block.__init__(layer, config.of_block(number), **kwargs)
        return layer

    def _build(self, x_shape, memory_shape=None):
        shapes = {"x": x_shape, "memory": memory_shape} if self.cross else {"x": x_shape}
        self.check_shapes(**shapes)
        self._add(self.history_role, self._make_history, self._make_first_norm, x_shape)
        if self.cross:
            self._add("cross_attention", self._make_cross, self._make_norm, x_shape, memory_shape)
        if self.config.block.feed_forward.is_sublayer or hasattr(self, "feed_forward"):
            self._add("feed_forward", self._make_feed_forward, self._make_norm, x_shape)
        self.dropout = Dropout(self.config.block.dropout, dtype=self.dtype_policy, name="dropout")

    def _add(self, role, make, make_norm, x_shape, *memory_shape):
        """Builds a sublayer, its norm and its scale, which are attributes of the block.

        Args:
            role: Name of the attribute and, unless a subclass has set it, of the sublayer.
            make, make_norm: Functions from a name to a layer.
            x_shape, *memory_shape: Shapes of the inputs.
        """
        layers = [
            (role, make, (x_shape, *memory_shape)),
            (f"{role}_norm", make_norm, (x_shape,)),
        ]
        initial = self.config.block.layer_scale
        if initial is not None:
            make_scale = functools.partial(self._make_scale, initial)
            layers.append((f"{role}_scale", make_scale, (x_shape,)))
        for name, factory, shapes in layers:
            if getattr(self, name, None) is None:
                setattr(self, name, factory(name))
            layer = getattr(self, name)
            if not layer.built:
                layer.build(*shapes)

    @property
    def history_role(self) -> str:
        """Name of the attribute with the sublayer that reads other positions of `x`."""
        return self.config.mixer.kind

    def _make_history(self, name):
        kwargs = {"dtype": self.dtype_policy, "kernels": self.kernels, "name": name}
        if not self.mixer.attends:
            return Mixing(self.mixer, self.causal, **kwargs)
        return MultiHeadSelfAttention(
            self.mixer, self.causal, self.position, self.config.hides_start, **kwargs
        )

    def _make_cross(self, name):
        reader = self.config.block.memory_attention
        kwargs = {"dtype": self.dtype_policy, "kernels": self.kernels, "name": name}
        if not reader.attends:
            return PositionReader(**kwargs)
        return MultiHeadCrossAttention(reader, **kwargs)

    def _make_feed_forward(self, name):
        block = self.config.block
        return FeedForward(
            block.d_ff,
            block.activation,
            block.activation_dropout,
            block.feed_forward,
            dtype=self.dtype_policy,
            kernels=self.kernels,
            name=name,
        )

    def _make_norm(self, name):
        return self.config.block.normalization.layer(self.dtype_policy, name)

    def _make_scale(self, initial, name):
        return LayerScale(initial, dtype=self.dtype_policy, name=name)

    def _make_first_norm(self, name):
        if self.config.block.norm.first:
            return self._make_norm(name)
        return keras.layers.Identity(dtype=self.dtype_policy, name=name)

    def history(self) -> MultiHeadSelfAttention | Mixing:
        """Returns the sublayer that reads other positions of `x`.

        It has the methods `empty_cache`, `extended_cache` and `step`. A beam search drops unused
        entries of its cache if it also has `compacted_cache` and its `reads_places` is false. This
        is not a property, because Keras would save the weights under the property's name.
        """
        return getattr(self, self.history_role)

    def residual(self, role: str) -> Residual:
        """Returns the `Residual` of a sublayer, with its norm, its scale and the block's dropout.

        Args:
            role: Name of the attribute with the sublayer, such as `"feed_forward"`.
        """
        sublayer, norm = getattr(self, role), getattr(self, f"{role}_norm")
        scale = getattr(self, f"{role}_scale", None)
        return Residual(sublayer, norm, self.dropout, self.config.block.norm.is_before, scale)

    def _run(
        self,
        x,
        memory=None,
        attention_mask=None,
        memory_attention_mask=None,
        return_attention_scores=False,
        training=None,
        mask=None,
        memory_mask=None,
    ):
        """Returns the output of a call, with the arguments of `DecoderBlock` (Fig. 1)."""
        weights = {}
        with_weights = {"return_attention_scores": True} if return_attention_scores else {}
        options = {"training": training, "mask": mask}
        if not self.config.has_state:
            options.update(with_weights)
        x, weights["self_attention"] = self.residual(self.history_role)(
            x, attention_mask, **options
        )
        if self.cross:
            options = {"training": training, "memory_mask": memory_mask}
            if self.config.block.memory_attention.attends:
                options.update(with_weights)
            x, weights["cross_attention"] = self.residual("cross_attention")(
                x, memory, memory_attention_mask, **options
            )
        x = self._transform(x, training)  # [B, T, D]
        weights = {name: tensor for name, tensor in weights.items() if tensor is not None}
        return (x, weights) if return_attention_scores else x

    def _transform(self, x, training=False):
        """Returns the output of the feed-forward network; without one, `x`."""
        if not hasattr(self, "feed_forward"):
            return x
        return self.residual("feed_forward")(x, training=training)[0]

    def read(
        self,
        x: Tensor,
        memory_heads: tuple[Tensor, Tensor] | None = None,
        memory_attention_mask: Tensor | None = None,
        count: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Runs a causal block at its first T positions, without dropout.

        Args:
            x: `[B, T, D]`.
            memory_heads, memory_attention_mask: See `step`.
            count: Number of positions that a search continues after, a scalar integer. `None`: T.

        Returns:
            The output `[B, T, D]`, and the key and value heads, see `MultiHeadSelfAttention.read`;
            or the state of another mixer, see `Mixing.read`.
        """
        x, heads = self.residual(self.history_role).read(x, count)  # [B, T, D]
        if self.cross:
            places = ops.arange(ops.shape(x)[1])
            x, _ = self.residual("cross_attention").step(
                x, memory_heads, memory_attention_mask, index=places
            )
        return self._transform(x), heads

    def read_more(
        self, x: Tensor, past: tuple[Tensor, ...], start: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Runs a causal block without cross-attention at T positions after earlier ones.

        Args:
            x: `[B, T, D]`.
            past, start: See `MultiHeadSelfAttention.read_more`.

        Returns:
            The output `[B, T, D]`, and the heads of all positions.
        """
        x, heads = self.residual(self.history_role).read_more(x, past, start)  # [B, T, D]
        return self._transform(x), heads

    def step(
        self,
        x: Tensor,
        cache: tuple[Tensor, ...],
        index: Tensor,
        memory_heads: tuple[Tensor, Tensor] | None = None,
        memory_attention_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        slot: Tensor | None = None,
    ) -> CachedOutput:
        """Runs the block at one position; the cache holds the earlier ones.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            cache: Key and value heads of the self-attention, see `MultiHeadSelfAttention.step`; or
                the state of another mixer, see `Mixing.step`.
            index: Index of the position, counted from 0: a scalar integer below `L`.
            memory_heads: Key and value heads of the memory, each `[B, G, S, K]`, shared by the
                hypotheses of a sentence. `None` if there is no memory.
            memory_attention_mask: Boolean `[B, 1, S]`.
            attention_mask: Boolean `[B, N, L * N]`; see `MultiHeadSelfAttention.step`. `None` with
                another mixer.
            return_attention_scores: Whether to also return the cross-attention weights.
            slot: See `MultiHeadSelfAttention.step`.

        Returns:
            A `CachedOutput`.
        """
        weights = None
        options = {} if slot is None else {"slot": slot}
        x, cache = self.residual(self.history_role).step(
            x, cache, index, attention_mask, **options
        )  # [B, N, D]
        if self.cross:
            x, weights = self.residual("cross_attention").step(
                x, memory_heads, memory_attention_mask, return_attention_scores, index=index
            )
        return CachedOutput(self._transform(x), cache, weights)  # [B, N, D]
