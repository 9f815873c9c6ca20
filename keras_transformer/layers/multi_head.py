"""Multi-head attention (section 3.2.2): the base class and cross-attention."""

import dataclasses
from typing import Any, ClassVar

import keras
from keras import ops

from keras_transformer.arguments import options_of, with_options
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.dot_product import attend, attend_with_weights, by_group
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.masks import join_masks
from keras_transformer.mixers import AttentionHeads, CrossAttention
from keras_transformer.norms import Norm
from keras_transformer.scores import AttentionScore
from keras_transformer.tensors import Shape, Tensor
from keras_transformer.variants import plain


class MultiHeadAttention(AttendingLayer):
    """Base class of self-attention and cross-attention: four projections around Eq. 1.

    `MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O` with
    `head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)`.

    Attributes:
        options: The options, a `SelfAttention` or a `CrossAttention`.
        options_class: Their class.

    Reference: Vaswani et al. (2017), section 3.2.2.
    """

    options_class: ClassVar[Any]
    num_heads: int
    num_key_value_heads: int
    head_sizes: tuple[int, int]
    dropout_rate: float
    score: AttentionScore
    query_key_norm: Norm | None

    def __init__(self, num_heads: int | dict[str, Any] | AttentionHeads, **options: Any):
        own = {
            name: options.pop(name) for name in options_of(self.options_class) if name in options
        }
        super().__init__(**options)
        if isinstance(num_heads, dict):  # from `get_config`
            num_heads = self.options_class.make(num_heads)
        if isinstance(num_heads, AttentionHeads):
            if not isinstance(num_heads, self.options_class):
                raise TypeError(
                    f"`num_heads` must be an integer or a `{self.options_class.__name__}`. "
                    f"Received: num_heads={num_heads!r}."
                )
            given = dataclasses.replace(num_heads, **own) if own else num_heads
        else:
            given = self.options_class(num_heads, **own)
        self.options = given
        self.num_heads, self.num_key_value_heads = given.num_heads, given.groups
        self.score, self.query_key_norm = given.score, given.query_key_norm
        self.dropout_rate = given.dropout
        self.dropout = Dropout(given.dropout, dtype=self.dtype_policy, name="dropout")

    def _build_projections(self, query_shape, memory_shape):
        self.check_shapes(x=query_shape, memory=memory_shape)
        d_model = query_shape[-1]
        self.head_sizes = d_k, d_v = self.options.head_sizes(d_model)
        groups = self.num_key_value_heads
        self.query = self._projection(self.num_heads * d_k, "query", d_model)
        self.key = self._projection(groups * d_k, "key", memory_shape[-1])
        self.value = self._projection(groups * d_v, "value", memory_shape[-1])
        self.output_projection = self._projection(d_model, "output", self.num_heads * d_v)
        if self.query_key_norm is not None:
            self.query_norm, self.key_norm = (
                self.query_key_norm.layer(self.dtype_policy, name)
                for name in ("query_norm", "key_norm")
            )
            self.query_norm.build((None, None, None, d_k))
            self.key_norm.build((None, None, None, d_k))
        self.score.build(self)

    def _projection(self, units, name, width):
        # Glorot initialisation of the whole [D, H * K] matrix; the paper does not specify any.
        dense = keras.layers.Dense(
            units,
            use_bias=name in self.options.biased_projections,
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, width))
        return dense

    def project_query(self, x: Tensor) -> Tensor:
        """Returns the query heads `[B, H, T, K]` of `x` `[B, T, D]`, prepared for the score."""
        return self.score.prepare_query(self, self._query_heads(x))

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the key and value heads of `memory` `[B, S, D]`, each `[B, G, S, K]`.

        The keys are prepared for the score; see `AttentionScore.prepare_key`.
        """
        key, value = self._key_heads(memory), self._value_heads(memory)
        return self.kernels.settle(self.score.prepare_key(self, key)), value

    def _query_heads(self, x, real=None):
        """Returns the query heads of `x`, normalised if the layer does that, `[B, H, T, K]`."""
        heads = self._heads(self.query, x, self.num_heads, real)
        return heads if self.query_key_norm is None else self.query_norm(heads)

    def _key_heads(self, x, real=None):
        """Returns the key heads of `x`, normalised if the layer does that, `[B, G, T, K]`."""
        heads = self._heads(self.key, x, self.num_key_value_heads, real)
        return heads if self.query_key_norm is None else self.key_norm(heads)

    def _value_heads(self, x, real=None):
        return self._heads(self.value, x, self.num_key_value_heads, real)  # [B, G, T, K]

    def compare(self, query: Tensor, key: Tensor) -> Tensor:
        """Returns the scores `[B, H, T, S]` of queries `[B, H, T, K]` and keys `[B, G, S, K]`."""
        return by_group(lambda *heads: self.score.compare(self, *heads), query, key)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        bias: Tensor | None = None,
        pairs: Tensor | None = None,
        real: Tensor | None = None,
    ) -> Tensor:
        """Attends with projected heads, then concatenates and projects the results.

        Args:
            query: `[B, H, T, K]`, prepared for the score.
            key: `[B, G, S, K]`, prepared for the score; H / G consecutive query heads share one.
            value: `[B, G, S, K]`.
            attention_mask: Boolean `[B, T, S]`; B and T may be 1. `None` allows everything.
            training: Whether dropout is active.
            bias: Added to the scores, broadcastable to `[B, H, T, S]`. `None`: nothing.
            pairs: Added to the values, one vector for each query and key, `[T, S, K]`. `None`:
                nothing.
            real: The mask by which the queries were packed; see `Packing`. `None`: they were not.

        Returns:
            The output `[B, T, D]`, packed like the queries.
        """
        heads = self._attended(query, key, value, attention_mask, training, bias, pairs)
        return self._join_heads(heads, real)

    def _attended(self, query, key, value, attention_mask, training, bias=None, pairs=None):
        """Returns the heads `[B, H, T, K]` that `attend` concatenates and projects."""
        scale = self.score.scale(query)
        drops = training and self.dropout_rate
        if self.kernels.attend is None or scale is None or drops or pairs is not None:
            composed = self._composed(query, key, value, attention_mask, training)
            return attend(*composed, bias, pairs, training)
        return self.kernels.attend(query, key, value, _of_heads(attention_mask), bias, scale)

    def attend_with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        bias: Tensor | None = None,
        pairs: Tensor | None = None,
        real: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Returns the output of `attend`, and the attention weights `[B, H, T, S]`."""
        composed = self._composed(query, key, value, attention_mask, training)
        heads, weights = attend_with_weights(*composed, bias, pairs)
        return self._join_heads(heads, real), weights

    def _composed(self, query, key, value, attention_mask, training):
        """Returns scores, values, mask and dropout: the first arguments of `dot_product.attend`."""

        def drop(weights):
            return self.kernels.keep(self.dropout(weights, training=training))

        return self.compare(query, key), value, _of_heads(attention_mask), drop

    def _heads(self, projection, x, count, real):
        flat = self.kernels.dense(projection, ops.reshape(x, (-1, x.shape[-1])))  # [B * T, H * K]
        return self.kernels.packing.split(flat, x, count, real)  # [B, H, T, K]

    def _join_heads(self, heads, real=None):
        flat = self.kernels.packing.join(heads, real)  # [B * T, H * K]
        x = self.kernels.dense(self.output_projection, flat)  # [B * T, D]
        return self.kernels.packing.restore(x, heads, real)  # [B, T, D]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        if type(self.options) is not self.options_class:  # a kind of your own
            return {**super().get_config(), "num_heads": plain(self.options)}
        names = options_of(self.options_class)
        own = {name: plain(getattr(self.options, name)) for name in names}
        return {**super().get_config(), **own}


def _of_heads(attention_mask):
    """Returns a mask `[B, T, S]` with an axis for the heads, `[B, H=1, T, S]`."""
    return None if attention_mask is None else ops.expand_dims(attention_mask, axis=1)


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(options_of(CrossAttention))
class MultiHeadCrossAttention(MultiHeadAttention):
    """Multi-head cross-attention: queries from one sequence, keys and values from another.

    Args:
        num_heads: Number of heads H; or a `CrossAttention` with all options.
        **options: The options of `CrossAttention`, and `name`, `dtype` and `trainable` as in every
            Keras layer.

    Call arguments:
        x: The sequence that attends, `[B, T, D]`, floating.
        memory: The sequence attended to, `[B, S, D]`, floating. Its width may differ from that of
            `x`.
        attention_mask: Boolean `[B, T, S]`, `True` where a query may attend to a key; B and T may
            be 1. `None` allows everything.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, passed on to the output. `None`: the mask that Keras attached to
            `x`, if any.
        memory_mask: Boolean `[B, S]`, `True` for keys that are not padding; combined with
            `attention_mask`. `None`: the mask that Keras attached to `memory`, if any.

    Returns:
        `[B, T, D]`; with `return_attention_scores`, a pair of this and the weights `[B, H, T, S]`.

    Raises:
        ValueError: If D is not divisible by `num_heads` and `d_k` or `d_v` is missing.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import MultiHeadCrossAttention
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> layer = MultiHeadCrossAttention(num_heads=4)
        >>> output, weights = layer(x, memory, return_attention_scores=True)
        >>> output.shape, weights.shape
        (TensorShape([2, 5, 16]), TensorShape([2, 4, 5, 7]))

    Reference: Vaswani et al. (2017), section 3.2.3, first item.
    """

    options_class = CrossAttention
    keys_of = {"attention_mask": "memory", "mask": "x", "memory_mask": "memory"}
    without_memory = "`MultiHeadSelfAttention`"

    def __init__(self, num_heads: int | CrossAttention, **options: Any):
        super().__init__(num_heads, **options)

    def build(
        self,
        x_shape: Shape,
        memory_shape: Shape,
        attention_mask_shape: Shape | None = None,
    ) -> None:  # noqa: D102
        self._build_projections(x_shape, memory_shape)

    def call(  # noqa: D102
        self,
        x: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        attention_mask = join_masks(attention_mask, memory_mask)  # [B, T, S]
        key, value = self.project_memory(memory)  # [B, G, S, K] twice
        attend = self.attend_with_weights if return_attention_scores else self.attend
        return attend(self.project_query(x), key, value, attention_mask, training)

    def step(
        self,
        x: Tensor,
        memory_heads: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        index: Tensor = 0,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attends from one position to a memory with projected heads.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`.
            memory_heads: Key and value heads from `project_memory`.
            attention_mask: Boolean `[B, 1, S]` or `[B, N, S]`. `None` allows everything.
            return_attention_scores: Whether to also return the attention weights.
            index: Index of the position, on which attention does not depend.

        Returns:
            `[B, N, D]`; with `return_attention_scores`, a pair of this and the weights `[B, H, N,
            S]`.
        """
        attend = self.attend_with_weights if return_attention_scores else self.attend
        return attend(self.project_query(x), *memory_heads, attention_mask)
