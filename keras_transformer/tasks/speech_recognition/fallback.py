"""Further attempts, at higher temperatures, at windows whose transcript is poor."""

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_transformer.checks import check_finite
from keras_transformer.tasks.speech_recognition.silence import NUMBERS, Silence

USUAL = (0.2, 0.4, 0.6, 0.8, 1.0)  # those of OpenAI's Whisper after 0


@dataclasses.dataclass(frozen=True)
class Fallback:
    """Repeats windows at higher temperatures while their text repeats itself or is improbable.

    A text is poor if its compression ratio is above `compression_ratio_threshold`, or its mean
    log-probability below `log_probability_threshold`, unless the window counts as silence. The
    first attempt that is not poor counts. If all are, the most probable one counts, preferably
    among those that do not repeat themselves.

    Args:
        silence: The `Silence` with the thresholds.
        temperatures: Temperatures of the further attempts, in order, positive. Empty: there are
            none.

    Differs from the paper, in which the last attempt counts if all are poor.

    Reference: Radford et al. (2022), "Robust Speech Recognition via Large-Scale Weak Supervision",
        section 4.5.
    """

    silence: Silence | None
    temperatures: tuple[float, ...] = ()

    def __call__(
        self, attempt: Callable[[float, Sequence[int]], list[Any]], count: int
    ) -> list[Any]:
        """Returns the attempt that counts for each of `count` windows.

        Args:
            attempt: Function from a temperature, first 0, and the numbers of windows to a result
                for each, with the fields `NUMBERS` and `compression_ratio`.
            count: Number of windows.
        """
        tried = [[result] for result in attempt(0.0, range(count))]
        for temperature in self.temperatures:
            poor = [number for number, results in enumerate(tried) if self.is_poor(results[-1])]
            if not poor:
                break
            for number, result in zip(poor, attempt(temperature, poor), strict=True):
                tried[number].append(result)
        return [max(results, key=self._order) for results in tried]

    def is_silent(self, result: Any) -> bool:
        """Returns whether a window counts as silence, see `Silence`."""
        if self.silence is None:
            return False
        numbers = {name: np.array([getattr(result, name)], np.float32) for name in NUMBERS}
        return bool(self.silence.holds(numbers)[0])

    def is_poor(self, result: Any) -> bool:
        """Returns whether the text of a window repeats itself, or is improbable without silence."""
        if self.silence is None or self.is_silent(result):
            return False
        return _repeats(result, self.silence) or (
            result.mean_log_probability < self.silence.log_probability_threshold
        )

    def _order(self, result):
        """Returns a key by which the attempt that counts is the largest."""
        if self.silence is None:
            return ()
        is_single = not _repeats(result, self.silence)
        return not self.is_poor(result), is_single, result.mean_log_probability


def _repeats(result, silence):
    return result.compression_ratio > silence.compression_ratio_threshold


def check_temperatures(temperatures: Any) -> tuple[float, ...]:
    """Returns temperatures as a tuple.

    Raises:
        TypeError, ValueError: If they are not positive numbers that increase.
    """
    if isinstance(temperatures, str) or not hasattr(temperatures, "__iter__"):
        raise TypeError(
            f"`temperatures` must be a list of numbers. Received: temperatures={temperatures!r}."
        )
    temperatures = tuple(temperatures)
    for temperature in temperatures:
        check_finite("temperatures", temperature)
    if any(low >= high for low, high in zip((0, *temperatures), temperatures, strict=False)):
        raise ValueError(
            "`temperatures` must be positive and increase, such as 0.2, 0.4, 0.6, 0.8, 1.0. "
            f"Received: temperatures={temperatures}."
        )
    return tuple(map(float, temperatures))


def seed_of(samples: np.ndarray) -> int:
    """Returns a seed that depends on a sound alone, from 0 to 2**31 - 1.

    Samples of the same recording in another batch, or in a list at another place, have the same.
    """
    return zlib.crc32(np.ascontiguousarray(samples, np.float32).tobytes()) & 0x7FFFFFFF
