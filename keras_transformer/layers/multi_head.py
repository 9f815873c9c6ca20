"""The base of multi-head attention: four projections around Eq. 1 (section 3.2.2)."""

import keras
from keras import ops

from keras_transformer.checks import check_count, check_flag, check_rate
from keras_transformer.config import head_sizes
from keras_transformer.layers import scores
from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.dot_product import attend
from keras_transformer.layers.dropout import Dropout


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
        """Returns the query heads of `x` `[B, T, D]`, as `[B, H, T, K]`.

        They are as the score takes them, see `AttentionScore.prepare_query`.
        """
        return self.score.prepare_query(self, self._heads(self.query, x))

    def project_memory(self, memory):
        """Returns the key and value heads of `memory` `[B, S, D]`, each `[B, H, S, K]`.

        The keys are as the score takes them, see `AttentionScore.prepare_key`.
        """
        key, value = self._heads(self.key, memory), self._heads(self.value, memory)
        return self.score.prepare_key(self, key), value

    def attend(self, query, key, value, allowed=None, training=None, bias=None, pairs=None):
        """Attends with projected heads, then joins and projects them.

        Args:
            query: `[B, H, T, K]`, as the score takes them.
            key: `[B, H, S, K]`, likewise.
            value: `[B, H, S, K]`.
            allowed: Boolean `[B, T, S]`, or 1 in place of B or T; `None` allows everything.
            training: Whether dropout is active.
            bias: What is added to the scores, broadcastable to `[B, H, T, S]`. `None`: nothing.
            pairs: What is added to the value of a key for a query, `[T, S, K]`. `None`: nothing.

        Returns:
            The output `[B, T, D]` and the attention weights `[B, H, T, S]`.
        """
        if allowed is not None:
            allowed = ops.expand_dims(allowed, axis=1)  # [B, H=1, T, S]
        heads, weights = attend(
            self.score.compare(self, query, key),
            value,
            allowed,
            lambda weights: self.kernels.keep(self.dropout(weights, training=training)),
            bias,
            pairs,
        )  # [B, H, T, K], [B, H, T, S]
        return self._join_heads(heads), weights

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
