"""Positions added to embeddings as rows of a table (section 3.5; Table 3, row E)."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

from keras_transformer.arguments import option
from keras_transformer.checks import check_count, is_integer
from keras_transformer.constants import shared
from keras_transformer.lazy_keras import keras, np, ops
from keras_transformer.positions.checks import check_even
from keras_transformer.positions.position import Position
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@functools.lru_cache(maxsize=16)
def sinusoids(
    length: int,
    d_model: int,
    layout: str = "interleaved",
    endpoint: bool = False,
    base: float = 10_000.0,
) -> np.ndarray:
    """Returns the sinusoidal encoding of the positions `0 .. length - 1`.

    `PE(pos, 2i) = sin(pos / 10000^(2i / d_model))`, `PE(pos, 2i + 1)` the cosine of the same angle.

    Computed in float64: in float32 the angle is off by 3e-4 at position 5,000, and in bfloat16
    positions above 256 are no longer distinct.

    Differs from the paper: `layout`, `endpoint` and `base` also give the variants of other
    implementations.

    Args:
        length: Number of positions.
        d_model: Width of the model, even.
        layout: `"interleaved"`: sine, cosine, sine and so on; `"halves"`: all sines first.
        endpoint: Whether the longest wavelength is exactly 10,000 times the shortest, as in
            tensor2tensor and Marian: the exponent is `2i / (d_model - 2)`.
        base: Base of the wavelengths, 10,000 in the paper.

    Returns:
        Read-only NumPy array `[length, d_model]`, float32.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers import sinusoids
        >>> np.round(sinusoids(2, 4).astype("float64"), 3).tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.841, 0.54, 0.01, 1.0]]

    Reference: Vaswani et al. (2017), section 3.5.
    """
    pairs = d_model // 2
    last = max(pairs - 1, 1) if endpoint else pairs
    position = np.arange(length, dtype=np.float64)[:, None]  # [T, 1]
    angles = position * base ** (-np.arange(pairs, dtype=np.float64) / last)  # [T, D / 2]
    waves = np.stack([np.sin(angles), np.cos(angles)])  # [2, T, D / 2]
    axes = (1, 2, 0) if layout == "interleaved" else (1, 0, 2)
    table = waves.transpose(axes).reshape(length, d_model).astype(np.float32)
    table.setflags(write=False)  # shared through the cache
    return table


class FixedPosition(Position):
    """Base class of position encodings that are added to embeddings and have no weights."""

    def table(self, length: int, d_model: int) -> np.ndarray:
        """Returns the encoding of `length` positions, a NumPy array `[length, d_model]`."""
        raise NotImplementedError

    def embed(self, embedding: keras.Layer, start: Tensor, tokens: Tensor) -> Tensor:  # noqa: D102
        # A formula has no maximum length: extend the table if the length is known.
        length = max(embedding.max_length, _known_length(start, tokens) or 0)
        table = shared(self.table(length, embedding.d_model))
        return _rows(embedding, table, start, tokens)


@declared
class Sinusoidal(FixedPosition):
    """Adds sinusoids of the position; see `sinusoids`.

    Args:
        **options: See `help(Sinusoidal)`.
    """

    kind = "sinusoidal"

    layout: Literal["interleaved", "halves"] = option(
        "interleaved",
        """Order of the features: `"interleaved"`, sine and cosine in turn, as in the paper; or
        `"halves"`, all sines and then all cosines.""",
    )
    endpoint: bool = option(
        False,
        """Makes the longest wavelength exactly 10,000 times the shortest, as in tensor2tensor and
        Marian.""",
    )
    offset: Annotated[int, functools.partial(check_count, least=0)] = option(
        0, "Position of the first token, 0 in the paper."
    )

    def check_stack(self, stack: Any) -> None:  # noqa: D102
        if stack.d_model is not None:
            check_even(stack.d_model)

    def check(self, embedding: keras.Layer) -> None:  # noqa: D102
        check_even(embedding.d_model)

    def table(self, length: int, d_model: int) -> np.ndarray:  # noqa: D102
        return sinusoids(length + self.offset, d_model, self.layout, self.endpoint)[self.offset :]


@declared
class Learned(Position):
    """Adds a learned vector for each position up to `max_length` (Table 3, row E)."""

    kind = "learned"

    def build(self, embedding: keras.Layer) -> None:  # noqa: D102
        embedding.positions = embedding.add_weight(
            shape=(embedding.max_length, embedding.d_model),
            initializer=keras.initializers.RandomNormal(stddev=embedding.d_model**-0.5),
            name="positions",
        )

    def embed(self, embedding: keras.Layer, start: Tensor, tokens: Tensor) -> Tensor:  # noqa: D102
        check_length("learned", embedding.max_length, _known_length(start, tokens))
        return _rows(embedding, embedding.positions, start, tokens)


def _known_length(start, tokens):
    """Returns the number of positions if it is known statically, otherwise `None`."""
    known = is_integer(start) and tokens.shape[1]
    return tokens.shape[1] + int(start) if known else None


def check_length(kind, max_length, known) -> None:
    """Raises `ValueError` for more positions than a table has.

    Args:
        kind: Name of the positions.
        max_length: Number of positions of the table.
        known: Number of positions of the input, or `None` if it is not known yet.
    """
    if known is not None and known > max_length:
        raise ValueError(
            f"`max_length` {kind} positions must cover the input. "
            f"Received: max_length={max_length}, {known} positions."
        )


def token_places(start, length) -> Tensor:
    """Returns the position of each token, int32 `[T]`, or `[B, T]` if `start` differs by row.

    Args:
        start: Position of the first token, an integer, a scalar tensor, or integers `[B]` or
            `[B, 1]`.
        length: Number of tokens T.
    """
    start = ops.cast(start, "int32")
    if len(start.shape) == 1:
        start = ops.expand_dims(start, axis=1)  # [B, 1]
    return start + ops.arange(length, dtype="int32")


def rows_or_nan(rows, places, length) -> Tensor:
    """Returns rows looked up in a table, with NaN for indices that are not in the table.

    XLA and GPUs clip an index to the last row; NaN makes such an error visible.

    Args:
        rows: The looked-up rows, `[..., D]`.
        places: Indices, integers `[...]`.
        length: Number of rows of the table.
    """
    inside = ops.logical_and(ops.greater_equal(places, 0), ops.less(places, length))
    return ops.where(ops.expand_dims(inside, axis=-1), rows, float("nan"))


def _rows(embedding, table, start, tokens):
    """Returns the rows of all tokens, `[T, D]`, or `[B, T, D]` if `start` differs by row."""
    table = ops.cast(table, embedding.compute_dtype)
    length, width = ops.shape(tokens)[1], embedding.d_model
    if is_integer(start):  # a slice beyond the table is an error on every device
        return ops.slice(table, (int(start), 0), (length, width))
    places = token_places(start, length)  # [T] or [B, T]
    if tokens.shape[1] == 1 and len(places.shape) == 1:  # a step of a search
        rows = ops.slice(table, (places[0], 0), (1, width))
    else:
        rows = look_up(table, places)
    return rows_or_nan(rows, places, table.shape[0])


def look_up(table: Tensor, tokens: Tensor) -> Tensor:
    """Returns the rows `[B, T, D]` of a table, a variable `[V, D]`, for token ids `[B, T]`."""
    # TensorFlow's gradient of a look-up is a list of rows with two entries for a token that occurs
    # twice, and Keras's optimizers square them separately. The reshape makes the gradient dense.
    whole = ops.reshape(ops.convert_to_tensor(table), table.shape)
    return ops.take(whole, ops.cast(tokens, "int32"), axis=0)
