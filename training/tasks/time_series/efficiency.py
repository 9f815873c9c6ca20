"""Loss and metrics of simulated time series."""

from typing import Any

import keras
from keras import ops

from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.weights import position_weights


@keras.saving.register_keras_serializable(package="keras_transformer")
class ScaledSquaredError(keras.losses.Loss):
    """Squared error, in units of the target's standard deviation.

    If `scale` is the standard deviation of the target over the steps that count, the mean over
    these steps is 1 minus the Nash-Sutcliffe efficiency.

    Args:
        scale: Divisor of the errors.
        name: Name of the loss.

    Call arguments:
        y_true: `[B, T, 2]`: the target of each step, and 1 if the step counts, otherwise 0.
        y_pred: `[B, T]`.
        sample_weight: Weight of each series, `[B]`, or of each step, `[B, T]`; steps that do not
            count never have a weight. `None`: 1.

    Returns:
        The mean over all steps, where steps that do not count contribute 0; or the result of
        another Keras `reduction`.

    Raises:
        ValueError: If sample weights have a wrong shape.

    Reference: Nash and Sutcliffe (1970), Eq. 3; as a loss Kratzert et al. (2019), Eq. 1.
    """

    def __init__(self, scale: float = 1.0, name: str = "loss", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.scale = scale

    # The base class would apply weights of the series, [B], to the T steps.
    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        if sample_weight is not None:
            steps = ops.convert_to_tensor(y_pred)  # [B, T]
            sample_weight = position_weights(sample_weight, steps) * ops.ones_like(steps)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        error = (ops.cast(y_pred, "float32") - y_true[..., 0]) / self.scale  # [B, T]
        return error * error * y_true[..., 1]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale": self.scale}


class _Moments(keras.metrics.Metric):
    """Moments of observed and simulated values, from which an efficiency is computed.

    Sums are in float64 and around 0: of its sixteen digits enough are left after the subtraction
    that gives a variance.

    Call arguments:
        y_true: `[B, T, 2]`; see `ScaledSquaredError`.
        y_pred: `[B, T]`.
        sample_weight: Weight of each series, `[B]`, or of each step, `[B, T]`; steps that do not
            count never have a weight. `None`: 1.
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.sums = self.add_variable((6,), "zeros", dtype="float64", name="sums")

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        counts, observed, simulated = (
            ops.cast(tensor, "float64") for tensor in (y_true[..., 1], y_true[..., 0], y_pred)
        )
        weights = counts
        if sample_weight is not None:
            weights = counts * ops.cast(position_weights(sample_weight, counts), "float64")
        terms = (
            ops.ones_like(observed),
            observed,
            simulated,
            observed * observed,
            simulated * simulated,
            observed * simulated,
        )
        self.sums.assign_add(ops.stack([ops.sum(term * weights) for term in terms]))

    def moments(self) -> tuple[Tensor, ...]:
        """Returns means and variances of observed and simulated values, and the covariance."""
        count, *sums = ops.unstack(self.sums.value, 6)
        o, s, oo, ss, os = (total / ops.maximum(count, 1.0) for total in sums)
        return o, s, oo - o * o, ss - s * s, os - o * s


@keras.saving.register_keras_serializable(package="keras_transformer")
class NashSutcliffe(_Moments):
    """Nash-Sutcliffe efficiency over all steps; see `nash_sutcliffe` of the task."""

    def __init__(self, name: str = "nse", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def result(self) -> Tensor:
        o, s, var_o, var_s, covariance = self.moments()
        error = var_o + var_s - 2 * covariance + (o - s) ** 2
        return ops.cast(1 - error / var_o, "float32")


@keras.saving.register_keras_serializable(package="keras_transformer")
class KlingGupta(_Moments):
    """Modified Kling-Gupta efficiency (KGE') over all steps; see `kling_gupta` of the task."""

    def __init__(self, name: str = "kge", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def result(self) -> Tensor:
        o, s, var_o, var_s, covariance = self.moments()
        beta, alpha = s / o, ops.sqrt(var_s / var_o)
        r = covariance / ops.sqrt(var_o * var_s)
        distance = (r - 1) ** 2 + (beta - 1) ** 2 + (alpha / beta - 1) ** 2
        return ops.cast(1 - ops.sqrt(distance), "float32")
