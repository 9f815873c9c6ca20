"""Slower rotary positions, for texts longer than those that a model was trained on."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from keras_transformer.arguments import option
from keras_transformer.checks import check_positive
from keras_transformer.lazy_keras import np
from keras_transformer.variants import Variant, declared

Positive = Annotated[float, check_positive]
SHORT = "Rotations with a shorter wavelength than this, in positions, are not divided."
LONG = """Rotations with a longer wavelength than this, in positions, are divided by `factor`.
    Rotations with a wavelength between `short_wave` and this one are divided in part."""


class RotaryScaling(Variant):
    """Base class of the ways to slow rotary positions down.

    Attributes:
        scale: Factor of the rotated heads.
    """

    option, taken_by = "scaling", "Rotary"
    scale = 1.0

    def scaled(self, rates: np.ndarray) -> np.ndarray:
        """Returns slower rates of rotation.

        Args:
            rates: Radians per position of each pair of features, `[K / 2]`, float64.
        """
        raise NotImplementedError


@declared
class LinearScaling(RotaryScaling):
    """Divides all angles by a factor.

    Args:
        **options: See `help(LinearScaling)`.

    Reference: Chen et al. (2023), "Extending Context Window of Large Language Models via Positional
        Interpolation".
    """

    kind = "linear"

    factor: Positive = option(dataclasses.MISSING, "Number that angles are divided by.")

    def scaled(self, rates: np.ndarray) -> np.ndarray:  # noqa: D102
        return rates / self.factor


@declared
class Llama3Scaling(RotaryScaling):
    """Divides slow rotations by a factor and others in part, by their frequency.

    Args:
        **options: See `help(Llama3Scaling)`.

    Raises:
        ValueError: If `short_wave` is not below `long_wave`.
    """

    kind = "llama3"

    factor: Positive = option(dataclasses.MISSING, "Number that slow angles are divided by.")
    short_wave: Positive = option(dataclasses.MISSING, SHORT)
    long_wave: Positive = option(dataclasses.MISSING, LONG)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_waves(self)

    def scaled(self, rates: np.ndarray) -> np.ndarray:  # noqa: D102
        return divided(rates, self.factor, *ramp(self, rates))


@declared
class YarnScaling(RotaryScaling):
    """Divides slow rotations by a factor and others in part, by the logarithm of their wavelength.

    Args:
        **options: See `help(YarnScaling)`.

    Raises:
        ValueError: If `short_wave` is not below `long_wave`.

    Reference: Peng et al. (2023), "YaRN: Efficient Context Window Extension of Large Language
        Models", sections 3.2 to 3.4.
    """

    kind = "yarn"

    factor: Positive = option(dataclasses.MISSING, "Number that slow angles are divided by.")
    short_wave: Positive = option(dataclasses.MISSING, SHORT)
    long_wave: Positive = option(dataclasses.MISSING, LONG)
    scale: Positive = option(1.0, "Factor of the query and key heads that are rotated.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_waves(self)

    def scaled(self, rates: np.ndarray) -> np.ndarray:  # noqa: D102
        return divided(rates, self.factor, *map(np.log, ramp(self, rates)))


def check_waves(scaling) -> None:
    """Raises `ValueError` unless the shorter wavelength is below the longer one."""
    if scaling.short_wave >= scaling.long_wave:
        raise ValueError(
            "`short_wave` must be below `long_wave`. Received: "
            f"short_wave={scaling.short_wave}, long_wave={scaling.long_wave}."
        )


def ramp(scaling, rates) -> tuple[np.ndarray, float, float]:
    """Returns frequencies: of all rotations, of the shorter wavelength and of the longer one."""
    return rates / (2 * np.pi), 1 / scaling.short_wave, 1 / scaling.long_wave


def divided(rates, factor, place, shortest, longest) -> np.ndarray:
    """Returns rates divided by a factor at `longest`, kept at `shortest`, and in part between."""
    kept = np.clip((place - longest) / (shortest - longest), 0, 1)
    return rates * (kept + (1 - kept) / factor)
