"""Multi-head attention, to the sequence itself and to another one (sections 3.2.2 and 3.2.3)."""

import keras
import numpy as np
from keras import ops

from keras_transformer.checks import check_count, check_flag, check_rate
from keras_transformer.config import head_sizes
from keras_transformer.layers import positions, scores
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.dot_product import attend, attend_to_parts
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.masks import causal_mask, join_masks


class MultiHeadAttention(AttendingLayer):
    """What self-attention and cross-attention share: four projections around Eq. 1.

    `MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O` with
    `head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)`.

    Reference: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(
        self,
        num_heads,
        d_k=None,
        d_v=None,
        dropout=0.0,
        use_bias=False,
        score="scaled_dot_product",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_count("num_heads", num_heads)
        check_count("d_k", d_k, optional=True)
        check_count("d_v", d_v, optional=True)
        check_rate("dropout", dropout)
        check_flag("use_bias", use_bias)
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_v
        self.dropout_rate = dropout
        self.use_bias = use_bias
        self.score = scores.get(score)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _build_projections(self, query_shape, memory_shape):
        self.check_shapes(x=query_shape, memory=memory_shape)
        d_model = query_shape[-1]
        d_k, d_v = head_sizes(d_model, self.num_heads, self.d_k, self.d_v)
        self.head_sizes = d_k, d_v
        self.query = self._projection(self.num_heads * d_k, "query", d_model)
        self.key = self._projection(self.num_heads * d_k, "key", memory_shape[-1])
        self.value = self._projection(self.num_heads * d_v, "value", memory_shape[-1])
        self.output_projection = self._projection(d_model, "output", self.num_heads * d_v)
        self.score.build(self)

    def _projection(self, units, name, width):
        # Glorot on the whole [D, H * K] matrix: the paper gives no initialisation.
        dense = keras.layers.Dense(
            units, use_bias=self.use_bias, dtype=self.dtype_policy, name=name
        )
        dense.build((None, None, width))
        return dense

    def project_query(self, x):
        """Returns the query heads of `x` `[B, T, D]`, as `[B, H, T, K]`."""
        return self._heads(self.query, x)

    def project_memory(self, memory):
        """Returns the key and value heads of `memory` `[B, S, D]`, each `[B, H, S, K]`.

        The keys are as the score takes them, see `AttentionScore.prepare_key`.
        """
        key, value = self._heads(self.key, memory), self._heads(self.value, memory)
        return self.score.prepare_key(self, key), value

    def attend(self, query, key, value, allowed=None, training=None, bias=None):
        """Attends with projected heads, then joins and projects them.

        Args:
            query: `[B, H, T, K]`.
            key: `[B, H, S, K]`.
            value: `[B, H, S, K]`.
            allowed: Boolean `[B, T, S]`, or 1 in place of B or T; `None` allows everything.
            training: Whether dropout is active.
            bias: What is added to the scores, broadcastable to `[H, T, S]`. `None`: nothing.

        Returns:
            The output `[B, T, D]` and the attention weights `[B, H, T, S]`.
        """
        if allowed is not None:
            allowed = ops.expand_dims(allowed, axis=1)  # [B, H=1, T, S]
        heads, weights = attend(
            self._scores(query, key)[0],
            value,
            allowed,
            lambda weights: self.kernels.keep(self.dropout(weights, training=training)),
            bias,
        )  # [B, H, T, K], [B, H, T, S]
        return self._join_heads(heads), weights

    def _scores(self, query, *keys):
        """Scores of queries with the keys in each of some tensors, a list of `[B, H, T, S]`."""
        query = self.score.prepare_query(self, query)
        return [self.score.compare(self, query, key) for key in keys]

    def _heads(self, projection, x):
        batch, length = ops.shape(x)[:2]
        x = self.kernels.dense(projection, ops.reshape(x, (-1, x.shape[-1])))  # [B * T, H * K]
        x = ops.reshape(x, (batch, length, self.num_heads, x.shape[-1] // self.num_heads))
        return ops.transpose(x, (0, 2, 1, 3))  # [B, H, T, K]

    def _join_heads(self, heads):
        batch, _, length, _ = ops.shape(heads)
        width = heads.shape[1] * heads.shape[3]
        flat = ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, width))  # [B * T, H * K]
        x = self.kernels.dense(self.output_projection, flat)  # [B * T, D]
        return ops.reshape(x, (batch, length, self.output_projection.units))  # [B, T, D]

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "dropout": self.dropout_rate,
            "use_bias": self.use_bias,
            "score": scores.serialize(self.score),
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadSelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence to itself, in both directions or causal.

    Args:
        num_heads: Number of heads H.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the attention weights.
        use_bias: Whether the projections have a bias.
        causal: Whether a position may attend to itself and earlier positions only.
        position: A `Position` that turns query and key heads, such as `Rotary()`, or adds to the
            scores, such as `Alibi()`, or the name of one. `None`: they do not depend on where the
            query and the key stand.
        score: How well a key fits a query: an `AttentionScore`, such as `Additive()`, or a name.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, D]`, floating.
        allowed: Boolean `[B, T]`, `True` where a key is real; or `[B, T, T]`, or 1 in place of B
            or of the first T, `True` where the query (second axis) may attend to the key (third).
            `None` allows everything.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, `True` where a key is real, joined with `allowed`. `None`: the mask
            that Keras attached to `x`, if it did.

    Returns:
        `[B, T, D]`; with `return_weights` a pair of that and the weights `[B, H, T, T]`.

    Raises:
        ValueError: If D is not divisible by `num_heads` and `d_k` or `d_v` is missing.

    Example:
        >>> import keras
        >>> from keras_transformer import MultiHeadSelfAttention
        >>> layer = MultiHeadSelfAttention(num_heads=4)
        >>> layer(keras.random.normal((2, 5, 16))).shape
        TensorShape([2, 5, 16])

    Reference: Vaswani et al. (2017), section 3.2.3, second and third item.
    """

    def __init__(
        self,
        num_heads,
        d_k=None,
        d_v=None,
        dropout=0.0,
        use_bias=False,
        causal=False,
        position=None,
        score="scaled_dot_product",
        **kwargs,
    ):
        super().__init__(num_heads, d_k, d_v, dropout, use_bias, score, **kwargs)
        check_flag("causal", causal)
        self.causal = causal
        self.position = positions.get("none" if position is None else position)

    def build(self, x_shape, allowed_shape=None):  # noqa: D102
        self._build_projections(x_shape, x_shape)
        self.position.build_attention(self)

    def call(self, x, allowed=None, return_weights=False, training=None, mask=None):  # noqa: D102
        past = causal_mask(ops.shape(x)[1]) if self.causal else None  # [1, T, T]
        allowed = join_masks(past, allowed, mask)  # [B, T, T]
        places = ops.arange(ops.shape(x)[1], dtype="int32")  # [T]
        query, key, value = self._project(x, places)  # [B, H, T, K] each
        bias = self.position.bias(self, places, places)  # [H, T, T]
        output, weights = self.attend(query, key, value, allowed, training, bias)
        return (output, weights) if return_weights else output

    def _project(self, x, places):
        """Query, key and value heads of positions, `[B, H, T, K]` each."""
        key, value = self._heads(self.key, x), self._heads(self.value, x)
        query = self.position.rotate(self.project_query(x), places)
        key = self.position.rotate(key, places)
        return query, self.score.prepare_key(self, key), value

    def step(self, x, cache, index, allowed=None):
        """Attends from one position to itself and the positions before it.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`; greedy search
                has one.
            cache: Key and value heads of R positions, each `[B, H, R, N * K]`; and if there are P
                earlier positions, which do not change any more, then theirs as well, each
                `[B, H, P, N * K]`. `L = P + R`.
            index: Number of the position, counting from 0; scalar integer from P and below `L`.
            allowed: Boolean `[B, N, L * N]`: which hypothesis may attend to position `l` of
                hypothesis `m`, found at `l * N + m`. `None`: to every earlier one, for N = 1.

        Returns:
            The output `[B, N, D]` and the cache with this position written at `index`.
        """
        recent, past = cache[:2], cache[2:]
        start = past[0].shape[2] if past else 0  # P
        query, *heads = self._project(x, index)  # [B, H, N, K] each
        recent = tuple(
            self.kernels.write(
                old, ops.reshape(new, (-1, self.num_heads, 1, old.shape[3])), index - start
            )
            for new, old in zip(heads, recent, strict=True)
        )  # [B, H, R, N * K] twice
        length = start + recent[0].shape[2]  # L
        if allowed is None:
            places = ops.arange(length, dtype="int32")  # [L]
            allowed = ops.reshape(ops.less_equal(places, index), (1, 1, -1))  # [1, T=1, L]
        cache = (*recent, *past)
        keys, values = (
            [self._by_hypothesis(cached, x.shape[1]) for cached in tensors]
            for tensors in ((*past[:1], recent[0]), (*past[1:], recent[1]))
        )  # lists of [B, H, P * N, K], if there is a past, and [B, H, R * N, K]
        bias = self.position.bias(self, index, np.repeat(np.arange(length), x.shape[1]))
        if not past:
            return self.attend(query, *keys, *values, allowed, False, bias)[0], cache
        allowed = ops.expand_dims(allowed, axis=1)
        heads = attend_to_parts(self._scores(query, *keys), values, allowed, bias)
        return self._join_heads(heads), cache

    def _by_hypothesis(self, x, width):
        """From `[B, H, L, N * K]` to `[B, H, L * N, K]`."""
        return ops.reshape(x, (-1, self.num_heads, x.shape[2] * width, x.shape[3] // width))

    def get_config(self):  # noqa: D102
        position = positions.serialize(self.position)
        return {**super().get_config(), "causal": self.causal, "position": position}


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadCrossAttention(MultiHeadAttention):
    """Multi-head attention of one sequence to another: queries here, keys and values there.

    Args:
        num_heads: Number of heads H.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the attention weights.
        use_bias: Whether the projections have a bias.
        score: How well a key fits a query: an `AttentionScore`, such as `Additive()`, or a name.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: The attending side, `[B, T, D]`, floating.
        memory: The attended side, `[B, S, D]`, floating; the last axis may have another size.
        allowed: Boolean `[B, S]`, `True` where a key is real; or `[B, T, S]`, or 1 in place of B
            or T, `True` where a query may attend to a key. `None` allows everything.
        return_weights: Whether to return the attention weights as well.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, which the output carries on. `None`: the mask that Keras attached
            to `x`, if it did.
        memory_mask: Boolean `[B, S]`, `True` where a key is real, joined with `allowed`. `None`:
            the mask that Keras attached to `memory`, if it did.

    Returns:
        `[B, T, D]`; with `return_weights` a pair of that and the weights `[B, H, T, S]`.

    Raises:
        ValueError: If D is not divisible by `num_heads` and `d_k` or `d_v` is missing.

    Example:
        >>> import keras
        >>> from keras_transformer import MultiHeadCrossAttention
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> output, weights = MultiHeadCrossAttention(num_heads=4)(x, memory, return_weights=True)
        >>> output.shape, weights.shape
        (TensorShape([2, 5, 16]), TensorShape([2, 4, 5, 7]))

    Reference: Vaswani et al. (2017), section 3.2.3, first item.
    """

    keys_of = {"allowed": "memory", "mask": "x", "memory_mask": "memory"}

    def build(self, x_shape, memory_shape, allowed_shape=None):  # noqa: D102
        self._build_projections(x_shape, memory_shape)

    def call(  # noqa: D102
        self,
        x,
        memory,
        allowed=None,
        return_weights=False,
        training=None,
        mask=None,
        memory_mask=None,
    ):
        allowed = join_masks(allowed, memory_mask)  # [B, T, S]
        key, value = self.project_memory(memory)  # [B, H, S, K] twice
        output, weights = self.attend(self.project_query(x), key, value, allowed, training)
        return (output, weights) if return_weights else output
