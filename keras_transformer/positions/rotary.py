"""Rotary positions, which rotate the query and key heads of self-attention."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any

from keras_transformer.arguments import option
from keras_transformer.checks import check_count, check_positive
from keras_transformer.constants import once, shared
from keras_transformer.lazy_keras import np, ops
from keras_transformer.positions.position import Position
from keras_transformer.positions.scaling import RotaryScaling
from keras_transformer.positions.tables import check_length, rows_or_nan
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared

LENGTH = 512  # of an attention without a stack
ROWS = 1024  # of a table; for more positions, two tables are multiplied


@declared
class Rotary(Position):
    """Rotates query and key heads, so that their dot products depend only on distances.

    The features i and i + K / 2 of a head are a point in the plane, which is rotated by the angle
    `pos / base^(2i / K)`. Differs from the paper, which adds positions to the embeddings.

    Args:
        **options: See `help(Rotary)`.

    Reference: Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding",
        Eq. 34, with the pairs of GPT-NeoX.
    """

    kind = "rotary"
    is_relative = by_row = True

    base: Annotated[float, check_positive] = option(
        10_000.0,  # section 3.3
        """Base of the wavelengths: the slowest rotation takes about this many positions, times
        2 pi.""",
    )
    scaling: RotaryScaling | None = option(
        None,
        """Slower rotations, for longer texts than those that a model was trained on: a
        `RotaryScaling`. `None`: rotations are not changed.""",
        of=RotaryScaling,
    )
    max_length: Annotated[int | None, functools.partial(check_count, optional=True)] = option(
        None,
        """Maximum number of positions. More positions are an error if their number is known when
        the graph is built. Otherwise, heads at later positions are NaN, or an error on devices that
        check indices. `None`: the `max_length` of the stack; 512 in an attention of its own.""",
    )

    @property
    def length(self) -> int:
        """Maximum number of positions."""
        return self.max_length or LENGTH

    def within(self, max_length: int) -> Rotary:  # noqa: D102
        return dataclasses.replace(self, max_length=self.max_length or max_length)

    def check_stack(self, stack: Any) -> None:  # noqa: D102
        if stack.d_model is not None:
            check_pairs(stack.head_sizes[0])

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:  # noqa: D102
        size = heads.shape[-1]
        check_pairs(size)
        check_length("rotary", self.length, _known_length(positions))
        key = self, size, str(heads.dtype)
        waves = once(key, positions, lambda: self._scaled_waves(positions, size, heads.dtype))
        sine, cosine = waves  # [T, K / 2] or [K / 2] each
        one, two = heads[..., : size // 2], heads[..., size // 2 :]  # [B, H, T, K / 2]
        return ops.concatenate([one * cosine - two * sine, two * cosine + one * sine], axis=-1)

    def _scaled_waves(self, positions, size, dtype):
        """Returns sines and cosines of the angles, times a scale; NaN at later positions."""
        scale = 1.0 if self.scaling is None else self.scaling.scale
        return tuple(
            ops.cast(scale * rows_or_nan(waves, positions, self.length), dtype)
            for waves in self._waves(positions, size)
        )

    def _waves(self, positions, size):
        """Returns the sines and cosines of the angles at positions, float32 `[..., K / 2]` each."""
        rates = size, self.base, self.scaling
        if self.length <= ROWS:
            return _rows(positions, self.length, 1, *rates)
        # The angle is that of a multiple of `ROWS` plus a smaller one. A single table of 131,072
        # positions would be a constant of 33 MB in every block.
        coarse = ops.floor_divide(positions, ROWS)
        sine, cosine = _rows(positions - coarse * ROWS, ROWS, 1, *rates)
        far_sine, far_cosine = _rows(coarse, -(-self.length // ROWS), ROWS, *rates)
        return (
            far_sine * cosine + far_cosine * sine,
            far_cosine * cosine - far_sine * sine,
        )


def check_pairs(size) -> None:
    """Raises `ValueError` for heads of an odd width."""
    if size % 2:
        raise ValueError(
            "`d_k` must be even for rotary positions, which rotate pairs of features. "
            f"Received: d_k={size}."
        )


def _known_length(positions):
    """Returns the number of positions `[T]` if it is known statically, otherwise `None`."""
    return positions.shape[0] if len(getattr(positions, "shape", ())) == 1 else None


def _rows(places, *arguments):
    """Returns the rows of both tables of `rotations`."""
    tables = (ops.convert_to_tensor(shared(table)) for table in rotations(*arguments))
    return [ops.take(table, places, axis=0) for table in tables]


@functools.lru_cache(maxsize=32)
def rotations(
    length: int, step: int, size: int, base: float, scaling: RotaryScaling | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sines and the cosines of the angles at the positions `0, step, 2 step, ...`.

    Computed in float64; see `sinusoids`.

    Args:
        length: Number of positions T.
        step: Distance between two of them.
        size: Width of a head K, even.
        base, scaling: See `Rotary`.

    Returns:
        Two read-only NumPy arrays `[T, K / 2]`, float32.
    """
    pairs = size // 2
    rates = base ** (-np.arange(pairs, dtype=np.float64) / pairs)  # radians per position
    if scaling is not None:
        rates = scaling.scaled(rates)
    angles = step * np.arange(length, dtype=np.float64)[:, None] * rates  # [T, K / 2]
    tables = np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32)
    for table in tables:
        table.setflags(write=False)  # shared through the cache
    return tables
