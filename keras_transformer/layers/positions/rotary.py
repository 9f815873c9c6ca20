"""Rotary positions, which rotate the query and key heads of self-attention."""

import functools
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.checks import check_positive
from keras_transformer.config.positions import ROTARY_BASE, check_waves
from keras_transformer.layers.constants import once, shared
from keras_transformer.layers.positions.position import Position
from keras_transformer.layers.positions.tables import check_length, rows_or_nan
from keras_transformer.tensors import Tensor

ROWS = 1024  # of a table; for more positions, two tables are multiplied


@keras.saving.register_keras_serializable(package="keras_transformer")
class Rotary(Position):
    """Rotates query and key heads, so that their dot products depend only on distances.

    The features i and i + K / 2 of a head are a point in the plane, which is rotated by the angle
    `pos / base^(2i / K)`. Differs from the paper, which adds positions to the embeddings.

    Args:
        max_length: Maximum number of positions. More are an error if their number is known when
            the graph is built; otherwise, heads at later positions are NaN, or an error on devices
            that check indices.
        base: Base of the wavelengths. A larger base, as in newer models for long texts, rotates the
            last features more slowly.
        factor: Number that angles are divided by, so that texts may be longer than those that a
            model was trained on. `None`: 1.
        short_wave, long_wave: Wavelengths in positions, as in Llama 3.1: angles with a shorter
            wavelength than the first are not divided by `factor`, those with a longer one than the
            second are, and those between them in part. `None`: all angles are divided.
        log_ramp: Whether that part depends on the logarithm of the wavelength, as in YaRN. `None`:
            it depends on the frequency.
        scale: Factor of the rotated heads. `None`: 1.

    Reference: Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding",
        Eq. 34, with the pairs of GPT-NeoX; Chen et al. (2023), "Extending Context Window of Large
        Language Models via Positional Interpolation"; Peng et al. (2023), "YaRN: Efficient Context
        Window Extension of Large Language Models", sections 3.2 to 3.4.
    """

    def __init__(
        self,
        max_length: int = 512,
        base: float = ROTARY_BASE,
        factor: float | None = None,
        short_wave: float | None = None,
        long_wave: float | None = None,
        log_ramp: bool | None = None,
        scale: float | None = None,
    ):
        check_positive("base", base)
        check_positive("factor", factor, optional=True)
        check_positive("scale", scale, optional=True)
        check_waves(factor, short_wave, long_wave, log_ramp)
        self.max_length, self.base, self.factor = max_length, base, factor
        self.short_wave, self.long_wave = short_wave, long_wave
        self.log_ramp, self.scale = log_ramp, scale

    @classmethod
    def of_attention(cls, config: Any) -> "Rotary":  # noqa: D102
        waves = config.rotary_short_wave, config.rotary_long_wave
        base = config.rotary_base or ROTARY_BASE
        more = config.rotary_log_ramp, config.rotary_scale
        return cls(config.max_length, base, config.rotary_factor, *waves, *more)

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:  # noqa: D102
        size = heads.shape[-1]
        if size % 2:
            raise ValueError(
                "`d_k` must be even for rotary positions, which rotate pairs of features. "
                f"Received: d_k={size}."
            )
        check_length("rotary", self.max_length, _known_length(positions))
        key = self, size, str(heads.dtype)
        waves = once(key, positions, lambda: self._scaled_waves(positions, size, heads.dtype))
        sine, cosine = waves  # [T, K / 2] or [K / 2] each
        one, two = heads[..., : size // 2], heads[..., size // 2 :]  # [B, H, T, K / 2]
        return ops.concatenate([one * cosine - two * sine, two * cosine + one * sine], axis=-1)

    def _scaled_waves(self, positions, size, dtype):
        """Returns the sines and cosines of the angles, times `scale`; NaN at later positions."""
        scale = 1.0 if self.scale is None else self.scale
        return tuple(
            ops.cast(scale * rows_or_nan(waves, positions, self.max_length), dtype)
            for waves in self._waves(positions, size)
        )

    def _waves(self, positions, size):
        """Returns the sines and cosines of the angles at positions, float32 `[..., K / 2]` each."""
        rates = (size, self.base, self.factor, self.short_wave, self.long_wave, self.log_ramp)
        if self.max_length <= ROWS:
            return _rows(positions, self.max_length, 1, *rates)
        # The angle is that of a multiple of `ROWS` plus a smaller one. A single table of 131,072
        # positions would be a constant of 33 MB in every block.
        coarse = ops.floor_divide(positions, ROWS)
        sine, cosine = _rows(positions - coarse * ROWS, ROWS, 1, *rates)
        far_sine, far_cosine = _rows(coarse, -(-self.max_length // ROWS), ROWS, *rates)
        return (
            far_sine * cosine + far_cosine * sine,
            far_cosine * cosine - far_sine * sine,
        )

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        names = ("max_length", "base", "factor", "short_wave", "long_wave", "log_ramp", "scale")
        return {name: getattr(self, name) for name in names}


def _known_length(positions):
    """Returns the number of positions `[T]` if it is known statically, otherwise `None`."""
    return positions.shape[0] if len(getattr(positions, "shape", ())) == 1 else None


def _rows(places, *arguments):
    """Returns the rows of both tables of `rotations`."""
    tables = (ops.convert_to_tensor(shared(table)) for table in rotations(*arguments))
    return [ops.take(table, places, axis=0) for table in tables]


@functools.lru_cache(maxsize=32)
def rotations(
    length: int,
    step: int,
    size: int,
    base: float,
    factor: float | None = None,
    short_wave: float | None = None,
    long_wave: float | None = None,
    log_ramp: bool | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sines and the cosines of the angles at the positions `0, step, 2 step, ...`.

    Computed in float64; see `sinusoids`.

    Args:
        length: Number of positions T.
        step: Distance between two of them.
        size: Width of a head K, even.
        base, factor, short_wave, long_wave, log_ramp: See `Rotary`.

    Returns:
        Two read-only NumPy arrays `[T, K / 2]`, float32.
    """
    pairs = size // 2
    rates = base ** (-np.arange(pairs, dtype=np.float64) / pairs)  # radians per position
    if factor is not None:
        kept = np.zeros(pairs)
        if short_wave is not None and long_wave is not None:
            place, shortest, longest = rates / (2 * np.pi), 1 / short_wave, 1 / long_wave
            if log_ramp:
                place, shortest, longest = map(np.log, (place, shortest, longest))
            kept = (place - longest) / (shortest - longest)
        kept = np.clip(kept, 0, 1)
        rates = rates * (kept + (1 - kept) / factor)
    angles = step * np.arange(length, dtype=np.float64)[:, None] * rates  # [T, K / 2]
    tables = np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32)
    for table in tables:
        table.setflags(write=False)  # shared through the cache
    return tables
