"""Multi-head attention of a sequence to itself (section 3.2.3, second and third item)."""

import keras
import numpy as np
from keras import ops

from keras_transformer.checks import check_count, check_flag
from keras_transformer.layers import positions
from keras_transformer.layers.dot_product import attend_to_parts
from keras_transformer.layers.masks import causal_mask, join_masks, window_mask
from keras_transformer.layers.multi_head import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadSelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence to itself, in both directions or causal.

    Args:
        num_heads: Number of heads H.
        d_k: Width of a query and key head. `None`: `d_model / num_heads`.
        d_v: Width of a value head. `None`: `d_model / num_heads`.
        dropout: Rate on the attention weights.
        use_bias: Whether the projections have a bias; or a list of those that have one, among
            `"query"`, `"key"`, `"value"` and `"output"`.
        causal: Whether a position may attend to itself and earlier positions only.
        position: A `Position` that turns query and key heads, such as `Rotary()`, or adds to the
            scores, such as `Alibi()`, or to keys and values, such as `Relative()`, or the name of
            one. `None`: they do not depend on where the query and the key stand.
        score: Score of a query and a key: an `AttentionScore`, such as `Additive()`, or a name.
        num_key_value_heads: Number of key and value heads G, each shared by H / G query heads in a
            row (Ainslie et al., 2023). `None`: H.
        window: Largest distance of a key that a position attends to (Beltagy et al., 2020). `None`:
            any.
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
        num_key_value_heads=None,
        window=None,
        **kwargs,
    ):
        own = (num_heads, d_k, d_v, dropout, use_bias, score, num_key_value_heads)
        super().__init__(*own, **kwargs)
        check_flag("causal", causal)
        check_count("window", window, optional=True)
        self.causal, self.window = causal, window
        self.position = positions.get("none" if position is None else position)

    def build(self, x_shape, allowed_shape=None):  # noqa: D102
        self._build_projections(x_shape, x_shape)
        self.position.build_attention(self)

    def call(self, x, allowed=None, return_weights=False, training=None, mask=None):  # noqa: D102
        places = ops.arange(ops.shape(x)[1], dtype="int32")  # [T]
        past = causal_mask(ops.shape(x)[1]) if self.causal else None  # [1, T, T]
        allowed = join_masks(past, self._near(places, places), allowed, mask)  # [B, T, T]
        query, key, value = self._project(x, places)  # [B, H, T, K], [B, G, T, K] twice
        relation = self._relation(query, places, places)
        attend = self.attend_with_weights if return_weights else self.attend
        return attend(query, key, value, allowed, training, *relation)

    def _project(self, x, places):
        """Query heads `[B, H, T, K]`, key and value heads `[B, G, T, K]`, for the score."""
        groups = self.num_key_value_heads
        query = self.position.rotate(self._heads(self.query, x, self.num_heads), places)
        key = self.position.rotate(self._heads(self.key, x, groups), places)
        query, key = self.score.prepare_query(self, query), self.score.prepare_key(self, key)
        return query, key, self._heads(self.value, x, groups)

    def _near(self, queries, keys):
        """The mask of the window, `[1, T, S]`; `None` without one."""
        return None if self.window is None else window_mask(queries, keys, self.window)

    def _relation(self, heads, queries, keys):
        """What the position adds to the scores, `[B, H, T, S]`, and to the values, `[T, S, K]`."""
        bias = self.position.bias(self, heads, queries, keys)
        return bias, self.position.values(self, queries, keys)

    def empty_cache(self, batch, length, width=1):
        """Returns a cache for `length` positions: key and value heads, zeros.

        Args:
            batch: Number of sentences B, an integer or a scalar tensor.
            length: Number of positions L, a Python integer.
            width: Number of hypotheses of a sentence N, a Python integer.

        Returns:
            Two tensors `[B, G, L, N * K]`.
        """
        return tuple(
            ops.zeros((batch, self.num_key_value_heads, length, width * size), self.compute_dtype)
            for size in self.head_sizes
        )

    def extended_cache(self, cache, length):
        """Returns a cache for `length` more positions; those there are do not change any more.

        Args:
            cache: What `empty_cache` or a step at the last position returned.
            length: Number of positions R, a Python integer.

        Returns:
            Two tensors `[B, G, R, N * K]`, zeros, and two `[B, G, P, N * K]` of all earlier
            positions.
        """

        def extended(recent, past=None):
            shape = (ops.shape(recent)[0], recent.shape[1], length, recent.shape[3])
            joined = recent if past is None else ops.concatenate([past, recent], axis=2)
            return ops.zeros(shape, recent.dtype), joined

        recent_key, recent_value, *past = cache
        key, value = extended(recent_key, *past[:1]), extended(recent_value, *past[1:])
        return key[0], value[0], key[1], value[1]

    def step(self, x, cache, index, allowed=None):
        """Attends from one position to itself and the positions before it.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`; greedy search
                has one.
            cache: Key and value heads of R positions, each `[B, G, R, N * K]`; and if there are P
                earlier positions, which do not change any more, then theirs as well, each
                `[B, G, P, N * K]`. `L = P + R`.
            index: Number of the position, counting from 0; scalar integer from P and below `L`.
            allowed: Boolean `[B, N, L * N]`: which hypothesis may attend to position `l` of
                hypothesis `m`, found at `l * N + m`. `None`: to every earlier one, for N = 1.

        Returns:
            The output `[B, N, D]` and the cache with this position written at `index`.
        """
        recent, past = cache[:2], cache[2:]
        start = past[0].shape[2] if past else 0  # P
        query, *heads = self._project(x, index)  # [B, H, N, K], [B, G, N, K] twice
        recent = tuple(
            self.kernels.write(
                old, ops.reshape(new, (-1, old.shape[1], 1, old.shape[3])), index - start
            )
            for new, old in zip(heads, recent, strict=True)
        )  # [B, G, R, N * K] twice
        length = start + recent[0].shape[2]  # L
        if allowed is None:
            places = ops.arange(length, dtype="int32")  # [L]
            allowed = ops.reshape(ops.less_equal(places, index), (1, 1, -1))  # [1, T=1, L]
        places = np.repeat(np.arange(length, dtype="int32"), x.shape[1])  # [L * N]
        allowed = join_masks(self._near(index, places), allowed)  # [B, N, L * N]
        cache = (*recent, *past)
        keys, values = (
            [self._by_hypothesis(cached, x.shape[1]) for cached in tensors]
            for tensors in ((*past[:1], recent[0]), (*past[1:], recent[1]))
        )  # lists of [B, G, P * N, K], if there is a past, and [B, G, R * N, K]
        relation = self._relation(query, index, places)
        if not past:
            return self.attend(query, *keys, *values, allowed, False, *relation), cache
        scores = [self.compare(query, key) for key in keys]  # of [B, H, N, P * N] ...
        heads = attend_to_parts(scores, values, ops.expand_dims(allowed, axis=1), *relation)
        return self._join_heads(heads), cache

    def _by_hypothesis(self, x, width):
        """From `[B, G, L, N * K]` to `[B, G, L * N, K]`."""
        return ops.reshape(x, (-1, x.shape[1], x.shape[2] * width, x.shape[3] // width))

    def get_config(self):  # noqa: D102
        position = positions.serialize(self.position)
        return {
            **super().get_config(),
            "causal": self.causal,
            "position": position,
            "window": self.window,
        }
