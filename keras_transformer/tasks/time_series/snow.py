"""Snow account: splits precipitation into rain and snow, and computes when the snow melts."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_count, check_positive
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class SnowAccount(CompositeLayer):
    """Replaces precipitation and temperature by water and snow, with the degree-day method.

    The layer models several zones, whose temperatures T differ from the input by their offsets. In
    each zone a fraction `f = clip((2 - T) / 4, 0, 1)` of the precipitation P falls as snow, and up
    to `factor * max(T, 0)` of the snow on the ground melts in a step: `S_t = max(0, S_{t-1} + f P -
    factor max(T, 0))`. The outputs are means over the zones: the water from rain and melt, and the
    snow S. The layer begins without snow and has no weights. It computes in float32 under every
    dtype policy.

    Args:
        precipitation: Index of the input P, in mm, on the last axis.
        temperature: Index of the input T, in degrees Celsius, on the last axis.
        max_length: Number of steps for which snow is tracked; in longer series, older snow is
            forgotten.
        factor: Millimetres that melt per step and degree.
        offsets: Difference between the temperature of each zone and the input.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, F]`, floating.

    Returns:
        `[B, T, F]`: water from rain and melt in mm at index `precipitation`, snow in mm at index
        `temperature`; the other inputs are unchanged.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import SnowAccount
        >>> winter = np.array([[[8.0, -9.0], [0.0, 9.0]]], "float32")
        >>> SnowAccount(0, 1, offsets=(0.0,))(winter).numpy().tolist()
        [[[0.0, 8.0], [8.0, 0.0]]]

    Reference: Hock (2003), "Temperature index melt modelling in mountain areas", Journal of
    Hydrology 282: degree-day factors of snow are mostly 2.5 to 5.5 mm per degree and day. By
    default the outermost zones differ by 9 degrees, which is a difference of 1,400 m in altitude at
    0.65 degrees per 100 m.
    """

    def __init__(
        self,
        precipitation: int,
        temperature: int,
        max_length: int = 512,
        factor: float = 4.0,
        offsets: Sequence[float] = (-4.5, -2.25, 0.0, 2.25, 4.5),
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("max_length", max_length)
        check_positive("factor", factor)
        for name, number in (("precipitation", precipitation), ("temperature", temperature)):
            if not isinstance(number, int) or number < 0:
                raise ValueError(f"`{name}` must be the index of an input. Received: {number!r}.")
        if precipitation == temperature or not offsets:
            raise ValueError(
                "`precipitation` and `temperature` must be different inputs, and `offsets` must "
                f"not be empty. Received: {precipitation}, {temperature} and {offsets!r}."
            )
        self.precipitation, self.temperature = precipitation, temperature
        self.max_length, self.factor, self.offsets = max_length, factor, tuple(offsets)
        self.widths = {}

    def build(self, x_shape: Shape) -> None:  # noqa: D102
        width = x_shape[-1]
        if max(self.precipitation, self.temperature) >= width:
            raise ValueError(
                "`precipitation` and `temperature` must be indices of inputs, counted from 0. "
                f"Received: {self.precipitation} and {self.temperature}, with {width} inputs."
            )
        self.widths = {"x": width}

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self, ndim=3)
        return {}

    def call(self, x: Tensor) -> Tensor:  # noqa: D102
        x = ops.cast(x, "float32")  # 16 bits are too few for sums over a year
        columns = ops.split(x, x.shape[-1], axis=-1)  # F of [B, T, 1]
        fallen = columns[self.precipitation]
        zones = columns[self.temperature] + ops.convert_to_tensor(
            self.offsets, x.dtype
        )  # [B, T, Z]
        snowfall = fallen * ops.clip((2.0 - zones) / 4.0, 0.0, 1.0)
        gains = snowfall - self.factor * ops.maximum(zones, 0.0)
        snow = self._accumulated(gains)
        before = ops.concatenate([ops.zeros_like(snow[:, :1]), snow[:, :-1]], axis=1)
        water = fallen - snowfall + (before + snowfall - snow)  # rain and melt
        columns[self.precipitation] = ops.mean(water, axis=-1, keepdims=True)
        columns[self.temperature] = ops.mean(snow, axis=-1, keepdims=True)
        return ops.cast(ops.concatenate(columns, axis=-1), self.compute_dtype)  # [B, T, F]

    def _accumulated(self, gains):
        """Returns `S_t = max(0, S_{t-1} + gains_t)`, computed without a loop over steps.

        S is the sum of all gains minus the lowest value that this sum has had so far, where the sum
        is 0 before the first step.
        """
        total = ops.cumsum(gains, axis=1)  # [B, T, Z]
        lowest, reach = total, 1
        while reach < self.max_length:  # the minimum of the last 2, 4, 8 ... steps
            earlier = ops.zeros_like(total[:, :1]) + ops.zeros((1, reach, 1), total.dtype)
            earlier = ops.concatenate([earlier, lowest], axis=1)[:, : ops.shape(total)[1]]
            lowest, reach = ops.minimum(lowest, earlier), 2 * reach
        return total - ops.minimum(lowest, 0.0)

    def compute_output_shape(self, x_shape: Shape) -> Shape:  # noqa: D102
        return x_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "precipitation": self.precipitation,
            "temperature": self.temperature,
            "max_length": self.max_length,
            "factor": self.factor,
            "offsets": list(self.offsets),
        }
