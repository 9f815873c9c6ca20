"""The arithmetic of layers that a runtime may do in a form of its own."""

import dataclasses
import functools
import typing

from keras import ops


def similarity(query, key):
    """Returns `Q K^T`, `[B, H, T, S]`, of queries `[B, H, T, K]` and keys `[B, H, S, K]`."""
    return ops.einsum("BHTK,BHSK->BHTS", query, key)


def write(cache, position, index):
    """Returns `cache` `[B, H, R, K]` with `position` `[B, H, 1, K]` at `index`.

    By a select, as TensorFlow's core has no kernel on the CPU that updates a slice.
    """
    here = ops.equal(ops.arange(cache.shape[2], dtype="int32"), index)  # [R]
    return ops.where(ops.reshape(here, (1, 1, -1, 1)), position, cache)


def keep(weights):
    """Returns the weights of an attention, `[B, H, T, S]`, as they are."""
    return weights


def dense(layer, x):
    """Returns what a `keras.layers.Dense` makes of `x` `[N, D]`."""
    return layer(x)


def look_up(table, tokens):
    """Returns the rows of a table, a variable `[V, D]`, for token ids `[B, T]`: `[B, T, D]`."""
    # TensorFlow's gradient of a look-up is a list of rows, in which a token that occurs twice has
    # two; Keras's optimizers square them one by one. That of a reshape is a whole table.
    whole = ops.reshape(ops.convert_to_tensor(table), table.shape)
    return ops.take(whole, ops.cast(tokens, "int32"), axis=0)


def project(table, x):
    """Returns the logits `[B, T, V]` of hidden states `[B, T, D]`, by a table, a variable `[V, D]`.

    One matrix product over all positions. With the batch as an axis of its own the gradient of the
    table is a `[B, V, D]` tensor first: 40 % of a training step of a small model.
    """
    (batch, length), (vocab_size, width) = ops.shape(x)[:2], table.shape
    flat = ops.reshape(x, (-1, width))  # [B * T, D]
    logits = ops.matmul(flat, ops.transpose(ops.cast(table, flat.dtype)))  # [B * T, V]
    return ops.reshape(logits, (batch, length, vocab_size))  # [B, T, V]


def restrict(weights, tokens, axis, dtype):
    """Returns the product with the output weights of a few tokens, a function of hidden states.

    These are gathered once for all calls of the function.

    Args:
        weights: A table, a variable `[V, D]`, or a kernel, `[D, V]`.
        tokens: Token ids `[C]`, int32, with C known statically.
        axis: Which axis of the weights is that of the tokens, 0 or 1.
        dtype: What is computed in, that of the hidden states.

    Returns:
        Function from `[B, N, D]` to `[B, N, C]`.
    """
    rows = look_up(weights, tokens) if axis == 0 else ops.transpose(ops.take(weights, tokens, 1))
    return functools.partial(project, ops.cast(rows, dtype))


def pick(vector, tokens):
    """Returns the entries of a vector, a variable `[V]`, for token ids `[C]`: `[C]`."""
    return ops.take(vector, tokens)


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Functions with which the layers compute, handed over when a model is built.

    They change how something is computed and not what, so they are not part of a layer's
    configuration. Exports build their own copy of a model with other ones: another runtime than
    TensorFlow does the same faster in another form.

    Args:
        similarity: See the function `similarity`, and so on. Scores that are no such products do
            not use it, see `AttentionScore`.
        write: Writes a position into a cache.
        keep: The weights of an attention on their way to the product with the values.
        attend: A whole attention as one operation, such as a fused one: `attend(query, key, value,
            allowed, bias, scale)` returns `softmax(scale Q K^T + bias) V`, `[B, H, T, K]`, of query
            heads `[B, H, T, K]` and key and value heads `[B, G, S, K]`, which H / G heads in a row
            share. `allowed` is boolean, `bias` floating, both broadcastable to `[B, H, T, S]` or
            `None`, `scale` a number; a query that may attend to nothing gets zeros. It is used
            where scores are products, nothing drops the weights, and nobody asks for them. `None`:
            scores, softmax and sum, by `similarity` and `keep`.
        dense: A linear map and its activation.
        look_up: Rows of a table of embeddings.
        project: The product with tied output weights.
        restrict: The product with the output weights of a few tokens, tied or not.
        pick: Entries of their bias.
    """

    similarity: typing.Callable = similarity
    write: typing.Callable = write
    keep: typing.Callable = keep
    attend: typing.Callable | None = None
    dense: typing.Callable = dense
    look_up: typing.Callable = look_up
    project: typing.Callable = project
    restrict: typing.Callable = restrict
    pick: typing.Callable = pick


DEFAULT = Kernels()
