"""Multi-head self-attention (section 3.2.3, second and third item)."""

import functools
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer import positions
from keras_transformer.arguments import options_of, with_options
from keras_transformer.checks import check_flag, is_integer
from keras_transformer.layers.dot_product import attend_to_parts
from keras_transformer.layers.local import LocalBlocks, chosen
from keras_transformer.layers.masks import causal_mask, join_masks, start_mask, window_mask
from keras_transformer.layers.multi_head import MultiHeadAttention
from keras_transformer.layers.row_places import RowPlaces
from keras_transformer.mixers import LocalWindow, SelfAttention
from keras_transformer.mixers.window import of_one_layer
from keras_transformer.tensors import Shape, Tensor
from keras_transformer.variants import plain


@keras.saving.register_keras_serializable(package="keras_transformer")
@with_options(options_of(SelfAttention))
class MultiHeadSelfAttention(MultiHeadAttention):
    """Multi-head self-attention, bidirectional or causal.

    Args:
        num_heads: Number of heads H; or a `SelfAttention` with all options.
        causal: Whether each position may attend only to itself and earlier positions.
        position: A position encoding for attention, or its name: a `Position` that rotates query
            and key heads (`Rotary()`), adds to the scores (`Alibi()`), or adds to keys and values
            (`Relative()`). `None`: attention does not depend on positions.
        hides_start: Whether only the first position attends to itself, so that a token that begins
            a text has no effect on later ones. Only for causal attention.
        **options: The options of `SelfAttention`, and `name`, `dtype` and `trainable` as in every
            Keras layer.

    Call arguments:
        x: `[B, T, D]`, floating.
        attention_mask: Boolean `[B, T, T]`, `True` where a query (second axis) may attend to a key
            (third axis); B and the first T may be 1. `None` allows everything.
        return_attention_scores: Whether to also return the attention weights.
        training: Whether dropout is active.
        mask: Boolean `[B, T]`, `True` for keys that are not padding; combined with
            `attention_mask`. `None`: the mask that Keras attached to `x`, if any.

    Returns:
        `[B, T, D]`; with `return_attention_scores`, a pair of this and the weights `[B, H, T, T]`.

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

    options_class = SelfAttention
    causal: bool
    hides_start: bool
    window: LocalWindow | None
    position: positions.Position

    def __init__(
        self,
        num_heads: int | SelfAttention,
        causal: bool = False,
        position: positions.Position | str | dict[str, Any] | None = None,
        hides_start: bool = False,
        **options: Any,
    ):
        super().__init__(num_heads, **options)
        check_flag("causal", causal)
        check_flag("hides_start", hides_start)
        if hides_start and not causal:
            raise ValueError(
                "`hides_start` must be false unless attention is causal. "
                f"Received: hides_start={hides_start}, causal={causal}."
            )
        window = self.options.window
        self.window = None if window is None else of_one_layer(window)
        self.causal, self.hides_start = causal, hides_start
        is_local = self.window is not None and not hides_start
        self.blocks = LocalBlocks(self.window.size, causal) if is_local else None
        self.position = positions.for_attention("none" if position is None else position)

    def build(self, x_shape: Shape, attention_mask_shape: Shape | None = None) -> None:  # noqa: D102
        self._build_projections(x_shape, x_shape)
        self.position.build_attention(self)

    def call(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:  # noqa: D102
        real, length = attention_mask, self.kernels.packing.length(x, attention_mask)
        places = ops.arange(length, dtype="int32")  # [T]
        heads = self._project(x, places, real)  # [B, H, T, K], [B, G, T, K] twice
        masks = join_masks(attention_mask, mask)
        return self._attend(heads, places, masks, training, real, return_attention_scores)

    def read(self, x: Tensor, count: Tensor | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the output of a call without dropout, and the key and value heads.

        Args:
            x: `[B, T, D]`, the first T positions.
            count: Number of positions that later ones may attend to; ignored, because a search
                writes its own heads over the others.

        Returns:
            The output `[B, T, D]`, and two tensors `[B, G, T, K]`, which `step` would cache.
        """
        places = ops.arange(ops.shape(x)[1], dtype="int32")  # [T]
        query, key, value = self._project(x, places)
        return self._attend((query, key, value), places), (key, value)

    def read_more(
        self, x: Tensor, past: tuple[Tensor, Tensor], start: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the output at T positions after earlier ones, and the heads of all of them.

        Args:
            x: `[B, T, D]`, the positions after the earlier ones.
            past: Key and value heads of the P earlier positions, each `[B, G, P, K]`.
            start: Number of earlier positions, a scalar integer of at most P. The later ones of the
                P heads are then ignored: the first position of `x` follows `start` positions.
                `None`: P.

        Returns:
            The output `[B, T, D]`, and two tensors `[B, G, P + T, K]`.
        """
        held, length = ops.shape(past[0])[2], ops.shape(x)[1]
        places = (held if start is None else start) + ops.arange(length, dtype="int32")  # [T]
        query, *new = self._project(x, places)
        pairs_of_heads = zip(past, new, strict=True)
        key, value = (ops.concatenate(pair, axis=2) for pair in pairs_of_heads)
        keys = ops.arange(held + length, dtype="int32")  # [P + T]
        earlier = ops.expand_dims(ops.expand_dims(places, 1) >= keys, 0)  # [1, T, P + T]
        if start is not None:
            of_past = ops.arange(held, dtype="int32")  # [P]
            keys = ops.concatenate([of_past, places])  # [P + T]
            ignored = ops.concatenate([of_past >= start, ops.zeros_like(places, "bool")])
            earlier = ops.expand_dims(
                ops.logical_and(ops.expand_dims(places, 1) >= keys, ops.logical_not(ignored)), 0
            )
        mask = join_masks(self._near(places, keys), earlier)
        bias, pairs = self._biases(query, key, places, keys)
        return self.attend(query, key, value, mask, False, bias, pairs), (key, value)

    def _attend(self, heads, places, attention_mask=None, training=False, real=None, weights=False):
        """Returns the output for all positions `[T]`, with all masks and biases; or also weights.

        With a window and many positions, scores are computed in blocks, unless they have biases.
        """
        query, key, _ = heads
        length = ops.shape(places)[0]
        bias, pairs = self._biases(query, key, places, places)

        def mask():
            past = causal_mask(length) if self.causal else None  # [1, T, T]
            return join_masks(past, self._near(places, places), attention_mask)  # [B, T, T]

        if weights:
            return self.attend_with_weights(*heads, mask(), training, bias, pairs, real)
        of_keys_alone = attention_mask is None or attention_mask.shape[1] == 1
        if self.blocks is None or bias is not None or pairs is not None or not of_keys_alone:
            return self.attend(*heads, mask(), training, bias, pairs, real)

        def near():
            attend = functools.partial(self._attended, training=training)
            return self.blocks.attend(attend, heads, attention_mask)

        def whole():
            return self._attended(*heads, mask(), training)

        return self._join_heads(chosen(self.blocks.pays(length), near, whole), real)

    def _project(self, x, places, real=None):
        """Returns query heads `[B, H, T, K]`, and key and value heads `[B, G, T, K]`."""
        query = self.position.rotate(self._query_heads(x, real), places)
        key = self.position.rotate(self._key_heads(x, real), places)
        query, key = self.score.prepare_query(self, query), self.score.prepare_key(self, key)
        return query, key, self._value_heads(x, real)

    def _near(self, queries, keys):
        """Returns the mask of the window and the start, `[1, T, S]`; `None`: all keys are near."""
        near = None if self.window is None else window_mask(queries, keys, self.window.size)
        return join_masks(near, start_mask(queries, keys)) if self.hides_start else near

    def _biases(self, query, key, queries, keys):
        """Returns the result of `_relation` with the bias of the key heads added."""
        bias, pairs = self._relation(query, queries, keys)
        of_keys = self.position.key_bias(self, key, queries, keys)  # [B, H, T, S]
        if of_keys is not None:
            bias = of_keys if bias is None else bias + of_keys
        return bias, pairs

    def _relation(self, heads, queries, keys):
        """Returns the terms that the position adds to scores `[B, H, T, S]` and values `[T, S, K]`.

        Each is `None` if there is nothing to add.
        """
        bias = self.position.bias(self, heads, queries, keys)
        return bias, self.position.values(self, queries, keys)

    def empty_cache(self, batch: Tensor, length: int, width: int = 1) -> tuple[Tensor, ...]:
        """Returns a cache of key and value heads for `length` positions, filled with zeros.

        Args:
            batch: Number of sentences B, an integer or a scalar tensor.
            length: Number of positions L.
            width: Number of hypotheses per sentence N.

        Returns:
            Two tensors `[B, G, L * N, K]`; the entry of hypothesis `n` at position `l` has index
            `l * N + n`.
        """
        return tuple(
            ops.zeros((batch, self.num_key_value_heads, length * width, size), self.compute_dtype)
            for size in self.head_sizes
        )

    def extended_cache(
        self, cache: tuple[Tensor, ...], length: int, width: int
    ) -> tuple[Tensor, ...]:
        """Returns a cache for `length` more positions; the earlier ones become read-only.

        Args:
            cache: A cache from `empty_cache`, after a `step` at its last position.
            length: Number of further positions R.
            width: Number of hypotheses per sentence N.

        Returns:
            Two tensors `[B, G, R * N, K]` of zeros, and two `[B, G, P * N, K]` with the P earlier
            positions; the unchanged cache if the `write` of the kernels makes room itself.
        """
        key, value = (self.kernels.extend(*cache[part::2], length * width) for part in (0, 1))
        return tuple(part for pair in zip(key, value, strict=True) for part in pair)

    def recalled_cache(
        self,
        cache: tuple[Tensor, ...],
        heads: tuple[Tensor, Tensor],
        unread: Tensor,
        width: int,
    ) -> tuple[Tensor, ...]:
        """Returns a cache with the positions that `read` has computed, for all hypotheses.

        The heads are those of the first hypothesis of a sentence; a mask lets the others attend to
        them. Positions that were not read are not defined: a `step` must write them before it
        attends to them.

        Args:
            cache: A cache from `empty_cache` or `extended_cache`, in which no step has written
                into the recent positions.
            heads: Key and value heads of the first T positions from `read`, each `[B, G, T, K]`.
            unread: Whether no `step` has written into the earlier positions; scalar boolean.
            width: Number of hypotheses per sentence N.
        """
        recent, past = cache[:2], cache[2:]
        start = past[0].shape[2] if past else 0  # P * N
        length = (start + ops.shape(recent[0])[2]) // width  # L
        whole = [_fitted(new, length, width) for new in heads]  # [B, G, L * N, K] twice
        recent = (of_all[:, :, start:] for of_all in whole)
        past = (
            ops.where(unread, of_all[:, :, :start], old)
            for of_all, old in zip(whole, past, strict=False)
        )
        return (*recent, *past)

    @property
    def reads_places(self) -> bool:
        """`True` if attention depends on the places of cached positions and not on heads alone."""
        return self.window is not None or self.hides_start or self.position.reads_keys

    def compacted_cache(
        self, cache: tuple[Tensor, ...], chosen: Tensor, length: int, width: int
    ) -> tuple[Tensor, ...]:
        """Returns a cache of chosen entries, with room for `length` more positions.

        Later steps need the `slot` of their positions. The layer must not be one that
        `reads_places`.

        Args:
            cache: A cache from `empty_cache`, `extended_cache` or this method, after a `step`.
            chosen: Indices of the C chosen entries, int32 `[B, C]`; those of earlier positions are
                counted first.
            length: Number of further positions R.
            width: Number of hypotheses per sentence N.

        Returns:
            Two tensors `[B, G, R * N, K]` of zeros, and two `[B, G, C, K]` with the chosen entries.
        """
        recent, past = [], []
        for part in (0, 1):
            new, *old = cache[part::2]
            heads = ops.concatenate([*old, new], axis=2) if old else new  # [B, G, S, K]
            batch, groups, count, size = ops.shape(heads)
            first = ops.arange(batch * groups, dtype="int32") * count
            rows = ops.reshape(first, (batch, groups, 1)) + ops.expand_dims(chosen, 1)  # [B, G, C]
            past.append(ops.take(ops.reshape(heads, (-1, size)), rows, axis=0))
            recent.append(ops.zeros((batch, groups, length * width, size), heads.dtype))
        return (*recent, *past)

    def step(
        self,
        x: Tensor,
        cache: tuple[Tensor, ...],
        index: Tensor,
        attention_mask: Tensor | None = None,
        slot: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Attends from one position to itself and all earlier positions.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`; N = 1 in greedy
                search.
            cache: Key and value heads of R positions, each `[B, G, R * N, K]`. After
                `extended_cache`, also those of the P earlier positions, each `[B, G, P * N, K]`.
                `L = P + R`.
            index: Index of the position, counted from 0: a scalar integer, `P <= index < L`. Or
                the `RowPlaces` of texts of different lengths, with N = 1, both parts of the cache
                and no mask; a position that is not `by_row` is then an error.
            attention_mask: Boolean `[B, N, L * N]`, `True` where a hypothesis may attend to
                position `l` of hypothesis `m`, at index `l * N + m`. `None`, for N = 1 only: to all
                earlier positions.
            slot: Index in place of `index` at which the cache holds the position. `None`: `index`,
                as long as the cache is not a `compacted_cache`.

        Returns:
            The output `[B, N, D]`, and the cache with this position written.

        Raises:
            ValueError: If `cache` or `attention_mask` is for another number of hypotheses.
        """
        if isinstance(index, RowPlaces):
            return self._step_of_rows(x, cache, index)
        recent, past, width = cache[:2], cache[2:], x.shape[1]
        start = ops.shape(past[0])[2] // width if past else 0  # P; not known if the cache grows
        query, *heads = self._project(x, index)  # [B, H, N, K], [B, G, N, K] twice
        slot = index if slot is None else slot
        recent = tuple(
            self.kernels.write(old, new, slot - start)
            for new, old in zip(heads, recent, strict=True)
        )  # [B, G, R * N, K] twice
        length = start + ops.shape(recent[0])[2] // width  # L
        if attention_mask is None:
            attention_mask = self.kernels.written(length, slot)  # [1, T=1, L]
        is_known = is_integer(length) and getattr(attention_mask, "shape", [None])[-1] is not None
        if is_known and attention_mask.shape[-1] != length * width:
            raise ValueError(
                "`cache` and `attention_mask` must have equally many entries for each sentence, a "
                f"multiple of the {width} hypotheses of `x`. Received by {self.name!r}: a cache of "
                f"{start * width + recent[0].shape[2]} and a mask of {attention_mask.shape[-1]} "
                "entries."
            )
        # A constant if the length is known.
        numbers = np if is_integer(length) else ops
        places = numbers.repeat(numbers.arange(length, dtype="int32"), width)  # [L * N]
        attention_mask = join_masks(self._near(index, places), attention_mask)  # [B, N, L * N]
        cache = (*recent, *past)
        # Lists of [B, G, P * N, K], if there is a past, and [B, G, R * N, K].
        keys, values = [*past[:1], recent[0]], [*past[1:], recent[1]]
        relation = self._relation(query, index, places)
        if not past:
            return self.attend(query, *keys, *values, attention_mask, False, *relation), cache
        scores = [self.compare(query, key) for key in keys]  # of [B, H, N, P * N] ...
        heads = attend_to_parts(scores, values, ops.expand_dims(attention_mask, axis=1), *relation)
        return self._join_heads(heads), cache

    def _step_of_rows(self, x, cache, rows):
        """Returns the result of `step` for one position `[B, 1, D]` of each text."""
        if not self.position.by_row:
            raise ValueError(
                "`index` must be one position for all texts: the position encoding has no form for "
                f"several. Received by {self.name!r}: position={self.position!r}."
            )
        recent, past = cache[:2], cache[2:]  # [B, G, R, K] twice, [B, G, P, K] twice
        query, *heads = self._project(x, rows.queries[:, 0])  # [B, H, 1, K], [B, G, 1, K] twice
        recent = tuple(
            self.kernels.write(old, new, rows.slot) for new, old in zip(heads, recent, strict=True)
        )
        near = self._near(rows.queries[:, 0], rows.keys[:, 0])  # [B, 1, P + R]
        mask = ops.expand_dims(join_masks(near, rows.visible), axis=1)  # [B, 1, 1, P + R]
        scores = [self.compare(query, key) for key in (past[0], recent[0])]
        relation = self._relation(query, rows.queries, rows.keys)
        heads = attend_to_parts(scores, [past[1], recent[1]], mask, *relation)
        return self._join_heads(heads), (*recent, *past)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        position = plain(self.position)
        return {
            **super().get_config(),
            "causal": self.causal,
            "position": position,
            "hides_start": self.hides_start,
        }


def _fitted(heads, length, width):
    """Returns heads `[B, G, T, K]` of the first hypothesis as a cache, `[B, G, L * N, K]`."""
    batch, groups, _, size = ops.shape(heads)
    heads = heads[:, :, :length]
    if not is_integer(length) or heads.shape[2] != length:
        count = ops.shape(heads)[2]
        missing = ops.zeros((batch, groups, length - count, size), heads.dtype)
        heads = ops.concatenate([heads, missing], axis=2)
    heads = ops.reshape(heads, (batch, groups, length, size))  # may have no positions
    heads = ops.pad(heads, [[0, 0], [0, 0], [0, 0], [0, (width - 1) * size]])
    return ops.reshape(heads, (batch, groups, length * width, size))
