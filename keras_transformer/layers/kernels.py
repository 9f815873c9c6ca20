"""Operations of layers and searches that an export may replace with faster ones for its runtime."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from keras_transformer.lazy_keras import ops
from keras_transformer.positions.tables import look_up
from keras_transformer.tensors import Tensor


class Packing:
    """The default: hidden states `[B, T, D]`, padding included.

    A subclass may pass on another form, such as `[1, N, D]` without padding, through norms and
    dense layers. Attention compares the positions of each text: `split` and `join` convert
    between its heads `[B, H, T, K]` and that form.

    The argument `real` of all methods is the `attention_mask` of the stack: boolean `[B, 1, T]`,
    `True` for tokens that are not padding, or another mask of attention, or `None`.
    """

    def pack(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Returns the hidden states `[B, T, D]` in the form in which the blocks get them."""
        return x

    def unpack(self, x: Tensor, real: Tensor | None) -> Tensor:
        """Returns `[B, T, D]` from the result of `pack`, after the blocks have changed it."""
        return x

    def length(self, x: Tensor, real: Tensor | None) -> int | Tensor:
        """Returns the number of positions T of packed hidden states."""
        return ops.shape(x)[1]

    def split(self, features: Tensor, x: Tensor, count: int, real: Tensor | None) -> Tensor:
        """Returns heads `[B, H, T, K]`.

        Args:
            features: Features of all positions of `x`, `[number of positions, H * K]`.
            x: Packed hidden states.
            count: Number of heads H.
            real: See the class.
        """
        batch, length = ops.shape(x)[:2]
        heads = ops.reshape(features, (batch, length, count, features.shape[-1] // count))
        return ops.transpose(heads, (0, 2, 1, 3))  # [B, H, T, K]

    def join(self, heads: Tensor, real: Tensor | None) -> Tensor:
        """Returns the features `[number of positions, H * K]` of heads `[B, H, T, K]`."""
        width = heads.shape[1] * heads.shape[3]
        return ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, width))

    def restore(self, features: Tensor, heads: Tensor, real: Tensor | None) -> Tensor:
        """Returns features `[number of positions, D]` as packed hidden states.

        Args:
            features: Features of all positions.
            heads: The heads `[B, H, T, K]` that they were computed from.
            real: See the class.
        """
        batch, _, length, _ = ops.shape(heads)
        return ops.reshape(features, (batch, length, features.shape[-1]))


PADDED = Packing()


def similarity(query: Tensor, key: Tensor) -> Tensor:
    """Returns `Q K^T`, `[B, H, T, S]`, of queries `[B, H, T, K]` and keys `[B, H, S, K]`."""
    return ops.einsum("BHTK,BHSK->BHTS", query, key)


def write(cache: Tensor, position: Tensor, index: Tensor) -> Tensor:
    """Returns a cache `[B, G, R * N, K]` with a position of N hypotheses written at `index`.

    Uses a select, because TensorFlow's core has no CPU kernel that updates a slice.

    Args:
        cache: The cache, in which the hypotheses of a position follow one another.
        position: `[B, G, N, K]`.
        index: Index of the position, a scalar integer from 0 to R - 1.
    """
    _, groups, rows, size = cache.shape
    count = position.shape[2]  # N
    here = ops.equal(ops.arange(rows // count, dtype="int32"), index)  # [R]
    written = ops.where(
        ops.reshape(here, (1, 1, -1, 1)),
        ops.reshape(position, (-1, groups, 1, count * size)),
        ops.reshape(cache, (-1, groups, rows // count, count * size)),
    )
    return ops.reshape(written, (-1, groups, rows, size))


def extend(recent: Tensor, *parts: Any) -> list[Tensor]:
    """Returns a cache with entries for more positions, as `[recent, past]`.

    Args:
        recent: Cache that steps have filled, `[B, G, R * N, K]`.
        *parts: The cache of the positions before, if there is one, and the number of new entries.
    """
    *past, count = parts
    zeros = ops.zeros((ops.shape(recent)[0], recent.shape[1], count, recent.shape[3]), recent.dtype)
    return [zeros, ops.concatenate([*past, recent], axis=2) if past else recent]


def written(length: Any, index: Tensor) -> Tensor | None:
    """Returns which of L cached positions are written after `write`, boolean `[1, 1, L]`.

    Args:
        length: Number of positions L.
        index: Index of the position that was written last, a scalar integer.
    """
    places = ops.arange(length, dtype="int32")  # [L]
    return ops.reshape(ops.less_equal(places, index), (1, 1, -1))


def positions(places: Tensor, heads: Tensor) -> Tensor:
    """Returns the positions `[T]` of query heads `[B, H, T, K]` unchanged."""
    return places


def settle(heads: Tensor) -> Tensor:
    """Returns key heads of a memory `[B, G, S, K]`, which every step of a search reads."""
    return heads


def keep(weights: Tensor) -> Tensor:
    """Returns attention weights `[B, H, T, S]` unchanged."""
    return weights


def dense(layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Returns the output of a `keras.layers.Dense` for `x` `[N, D]`."""
    return layer(x)


def project(table: Tensor, x: Tensor) -> Tensor:
    """Returns logits `[B, T, V]`: hidden states `[B, T, D]` times a table, a variable `[V, D]`.

    Computes one matrix product over all positions. With a separate batch axis, the gradient of the
    table would first be a `[B, V, D]` tensor, which takes 40 % of a small model's training step.
    """
    (batch, length), (vocab_size, width) = ops.shape(x)[:2], table.shape
    flat = ops.reshape(x, (-1, width))  # [B * T, D]
    logits = ops.matmul(flat, ops.transpose(ops.cast(table, flat.dtype)))  # [B * T, V]
    return ops.reshape(logits, (batch, length, vocab_size))  # [B, T, V]


def restrict(weights: Tensor, tokens: Tensor, axis: int, dtype: str) -> Callable[[Tensor], Tensor]:
    """Returns a function that computes the logits of a few tokens.

    The output weights of these tokens are gathered once for all calls of the function.

    Args:
        weights: Output weights: a table, a variable `[V, D]`, or a kernel `[D, V]`.
        tokens: Token ids `[C]`, int32, with C known statically.
        axis: Axis of the tokens in `weights`, 0 or 1.
        dtype: Dtype of the hidden states and of the computation.

    Returns:
        Function from hidden states `[B, N, D]` to logits `[B, N, C]`.
    """
    rows = look_up(weights, tokens) if axis == 0 else ops.transpose(ops.take(weights, tokens, 1))
    return functools.partial(project, ops.cast(rows, dtype))


def pick(vector: Tensor, tokens: Tensor) -> Tensor:
    """Returns the entries `[C]` of a vector, a variable `[V]`, for token ids `[C]`."""
    return ops.take(vector, tokens)


def log_sum_exp(logits: Any) -> Tensor:
    """Returns the logarithm of the sum of exponentials of each row, `[..., 1]`.

    Args:
        logits: The `Blocks` of logits `[..., V]`.
    """
    return ops.logsumexp(logits.values, axis=-1, keepdims=True)


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Operations that the layers of a model and its searches compute with, chosen with the model.

    They affect how a result is computed, not the result, so they are not part of a layer's
    configuration. Exports copy a model with other kernels where their runtime is faster with
    another form of the same operation. The defaults are the functions of this module.

    Args:
        similarity: Dot products of queries and keys. Used by scores that are such products; see
            `AttentionScore`.
        write: Writes a position into a cache.
        written: Mask of the positions that are written. `None` in its place: all of them are.
        extend: Extends a cache that is full. If `write` makes room itself, it returns the cache.
        positions: Applied to the positions of queries, and given their heads, where a table of all
            queries and keys follows from nothing else. A converter would store such a table.
        settle: Applied to the key heads of a memory, which are computed once and read in every step
            of a search. A converter may move a part of that computation into the steps.
        keep: Applied to attention weights before their product with the values.
        attend: A whole attention as one, possibly fused operation.
            `attend(query, key, value, attention_mask, bias, scale)` returns
            `softmax(scale Q K^T + bias) V`, `[B, H, T, K]`, for query heads `[B, H, T, K]` and key
            and value heads `[B, G, S, K]`, each shared by H / G consecutive query heads.
            `attention_mask` is boolean and `bias` floating, both broadcastable to `[B, H, T, S]` or
            `None`; `scale` is a number. The result is zero for a query that may attend to nothing.
            It is used if scores are dot products, no dropout is active, and the weights are not
            requested. `None`: attention is computed with `similarity` and `keep`.
        packing: Form of the hidden states in a stack without cross-attention; see `Packing`.
        dense: A dense layer with its activation.
        look_up: Rows of an embedding table.
        project: Logits from tied output weights.
        restrict: Logits of a few tokens, from tied or separate output weights.
        pick: Entries of the output bias for a few tokens.
        log_sum_exp: Denominator of the probabilities of the next token, as a logarithm.
        cache_stages: How the cache of a search grows; see `SearchOptions`. `None`: while it is
            needed.
    """

    similarity: Callable = similarity
    write: Callable = write
    written: Callable = written
    extend: Callable = extend
    positions: Callable = positions
    settle: Callable = settle
    keep: Callable = keep
    attend: Callable | None = None
    packing: Packing = PADDED
    dense: Callable = dense
    look_up: Callable = look_up
    project: Callable = project
    restrict: Callable = restrict
    pick: Callable = pick
    log_sum_exp: Callable = log_sum_exp
    cache_stages: Any = None


DEFAULT = Kernels()
