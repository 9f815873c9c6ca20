"""The loss and the metrics of a simulated series."""

import keras
from keras import ops

from keras_transformer.training.losses.weights import position_weights


@keras.saving.register_keras_serializable(package="keras_transformer")
class ScaledSquaredError(keras.losses.Loss):
    """The square of every error, in units of the target's standard deviation.

    Its mean over the steps that count is 1 minus the Nash-Sutcliffe efficiency, if `scale` is the
    standard deviation of those.

    Args:
        scale: What an error is divided by.
        name: Name of the loss.

    Call arguments:
        y_true: `[B, T, 2]`: of each step the target, and 1 where it counts, otherwise 0.
        y_pred: `[B, T]`.
        sample_weight: How much each series counts, `[B]`, or each step, `[B, T]`, of the steps that
            count. `None`: 1.

    Returns:
        The mean of all steps, of which those that do not count are 0; or what `reduction` names.

    Raises:
        ValueError: If sample weights have a wrong shape.

    Reference: Nash and Sutcliffe (1970), Eq. 3; as a loss Kratzert et al. (2019), Eq. 1.
    """

    def __init__(self, scale=1.0, name="loss", **kwargs):
        super().__init__(name=name, **kwargs)
        self.scale = scale

    # The base class would take weights of the series, [B], for those of the T steps.
    def __call__(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            steps = ops.convert_to_tensor(y_pred)  # [B, T]
            sample_weight = position_weights(sample_weight, steps) * ops.ones_like(steps)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        error = (ops.cast(y_pred, "float32") - y_true[..., 0]) / self.scale  # [B, T]
        return error * error * y_true[..., 1]

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}


class _Moments(keras.metrics.Metric):
    """Sums over steps, from which an efficiency follows.

    Sums are in float64, around 0: the sixteen digits leave enough after the subtraction.

    Call arguments:
        y_true: `[B, T, 2]`; see `ScaledSquaredError`.
        y_pred: `[B, T]`.
        sample_weight: How much each series counts, `[B]`, or each step, `[B, T]`, of the steps that
            count. `None`: 1.
    """

    def __init__(self, name, **kwargs):
        super().__init__(name=name, **kwargs)
        self.sums = self.add_variable((6,), "zeros", dtype="float64", name="sums")

    def update_state(self, y_true, y_pred, sample_weight=None):
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

    def moments(self):
        """Returns both means, both variances, and the covariance."""
        count, *sums = ops.unstack(self.sums.value, 6)
        o, s, oo, ss, os = (total / ops.maximum(count, 1.0) for total in sums)
        return o, s, oo - o * o, ss - s * s, os - o * s


@keras.saving.register_keras_serializable(package="keras_transformer")
class NashSutcliffe(_Moments):
    """The Nash-Sutcliffe efficiency of all steps together; see `nash_sutcliffe` of the task."""

    def __init__(self, name="nse", **kwargs):
        super().__init__(name=name, **kwargs)

    def result(self):
        o, s, var_o, var_s, covariance = self.moments()
        error = var_o + var_s - 2 * covariance + (o - s) ** 2
        return ops.cast(1 - error / var_o, "float32")


@keras.saving.register_keras_serializable(package="keras_transformer")
class KlingGupta(_Moments):
    """KGE' of all steps together; see `kling_gupta` of the task."""

    def __init__(self, name="kge", **kwargs):
        super().__init__(name=name, **kwargs)

    def result(self):
        o, s, var_o, var_s, covariance = self.moments()
        beta, alpha = s / o, ops.sqrt(var_s / var_o)
        r = covariance / ops.sqrt(var_o * var_s)
        distance = (r - 1) ** 2 + (beta - 1) ** 2 + (alpha / beta - 1) ** 2
        return ops.cast(1 - ops.sqrt(distance), "float32")
