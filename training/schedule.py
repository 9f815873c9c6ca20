"""Learning rates as functions of the update."""

from typing import Any

import keras
from keras import ops

from keras_transformer.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupInverseSqrt(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then inverse-square-root decay.

    `rate(n) = scale * d_model**-0.5 * min(n**-0.5, n * warmup_steps**-1.5)`; the peak,
    `scale * (d_model * warmup_steps)**-0.5`, falls on `n = warmup_steps`.

    Args:
        d_model: Width of the model, in features.
        warmup_steps: Length of the warm-up, in optimizer updates.
        scale: Factor on the whole curve.

    Call arguments:
        step: Number of updates already applied. Keras counts from 0, so `n = step + 1`.

    Returns:
        The learning rate, a float32 scalar.

    Raises:
        ValueError: If `d_model`, `warmup_steps` or `scale` is not positive.

    Example:
        >>> from keras_transformer.training.schedule import WarmupInverseSqrt
        >>> rate = WarmupInverseSqrt(d_model=512, warmup_steps=4000)
        >>> [f"{float(rate(step)):.2e}" for step in (0, 3_999, 99_999)]
        ['1.75e-07', '6.99e-04', '1.40e-04']

    Reference: Vaswani et al. (2017), section 5.3, Eq. 3.

    Differs from the paper: `scale`, 1 by default.
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, scale: float = 1.0):
        super().__init__()
        _check_positive(d_model=d_model, warmup_steps=warmup_steps, scale=scale)
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.scale = scale

    def __call__(self, step: Tensor) -> Tensor:
        n = ops.cast(step, "float32") + 1.0
        rise = n * self.warmup_steps**-1.5
        return self.scale * self.d_model**-0.5 * ops.minimum(ops.rsqrt(n), rise)

    def get_config(self) -> dict[str, Any]:
        return {
            "d_model": self.d_model,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to a peak, then linear decay to a final rate.

    `rate(n) = peak * n / warmup_steps` up to `n = warmup_steps`, where the peak is; then a straight
    line to `final` at `n = updates`, and `final` from there on. Suits short runs of known length,
    at whose end Eq. 3 would still be near its peak.

    Args:
        peak: Highest learning rate.
        warmup_steps: Length of the warm-up, in optimizer updates.
        updates: Length of training, in optimizer updates.
        final: Learning rate of the last update, from 0 to `peak`. With a rate above 0, the last
            checkpoints still differ, so that their average gains more.

    Call arguments:
        step: Number of updates already applied. Keras counts from 0, so `n = step + 1`.

    Returns:
        The learning rate, a float32 scalar.

    Raises:
        ValueError: If another argument is not positive, `final` is out of range, or the warm-up is
            not shorter than `updates`.
    """

    def __init__(self, peak: float, warmup_steps: int, updates: int, final: float = 0.0):
        super().__init__()
        _check_positive(peak=peak, warmup_steps=warmup_steps, updates=updates)
        _check_decay_has_steps(warmup_steps, updates)
        _check_final(final, peak)
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.updates = updates
        self.final = final

    def __call__(self, step: Tensor) -> Tensor:
        n = ops.cast(step, "float32") + 1.0
        rise = n / self.warmup_steps
        fall = (self.updates - n) / (self.updates - self.warmup_steps)
        share = self.final / self.peak  # of the peak, after the last update
        fall = share + (1 - share) * ops.maximum(fall, 0.0)
        return self.peak * ops.minimum(rise, fall)

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "updates": self.updates,
            "final": self.final,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupConstant(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to a constant rate: `rate(n) = peak * min(n / warmup_steps, 1)`.

    Args:
        peak: Learning rate after the warm-up.
        warmup_steps: Length of the warm-up, in optimizer updates.

    Call arguments:
        step: Number of updates already applied. Keras counts from 0, so `n = step + 1`.

    Returns:
        The learning rate, a float32 scalar.

    Raises:
        ValueError: If an argument is not positive.
    """

    def __init__(self, peak: float, warmup_steps: int):
        super().__init__()
        _check_positive(peak=peak, warmup_steps=warmup_steps)
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step: Tensor) -> Tensor:
        n = ops.cast(step, "float32") + 1.0
        return self.peak * ops.minimum(n / self.warmup_steps, 1.0)

    def get_config(self) -> dict[str, Any]:
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}


def warmup_cosine(
    peak: float, warmup_steps: int, updates: int, final: float = 0.0
) -> keras.optimizers.schedules.CosineDecay:
    """Returns Keras's `CosineDecay` with linear warm-up, then half a cosine to a final rate.

    With `n` counted as in the other schedules, `rate(n) = peak * n / warmup_steps` up to
    `n = warmup_steps`, then `final + (peak - final) / 2 * (1 + cos(pi * x))` with
    `x = (n - warmup_steps) / (updates - warmup_steps)`, and `final` from `n = updates` on. Keras
    counts `step = n - 1` and begins at `initial_learning_rate`, which is
    `peak / warmup_steps` here: with the usual zero, the first update would have no effect.

    Args:
        peak: Highest learning rate.
        warmup_steps: Length of the warm-up, in optimizer updates.
        updates: Length of training, in optimizer updates.
        final: Learning rate of the last update, from 0 to `peak`.

    Raises:
        ValueError: If another argument is not positive, `final` is out of range, or the warm-up is
            not shorter than `updates`.
    """
    _check_positive(peak=peak, warmup_steps=warmup_steps, updates=updates)
    _check_decay_has_steps(warmup_steps, updates)
    _check_final(final, peak)
    rise = {"warmup_target": peak, "warmup_steps": warmup_steps - 1} if warmup_steps > 1 else {}
    return keras.optimizers.schedules.CosineDecay(
        peak / warmup_steps, updates - warmup_steps, alpha=final / peak, **rise
    )


def make_schedule(settings, d_model, updates) -> keras.optimizers.schedules.LearningRateSchedule:
    """Returns the schedule that `[schedule]` describes.

    Args:
        settings: A `ScheduleSettings`.
        d_model: Width of the model, in features.
        updates: Length of training, in optimizer updates.
    """
    if settings.kind == "constant":
        return WarmupConstant(settings.peak, settings.warmup_steps)
    if settings.kind == "cosine":
        return warmup_cosine(settings.peak, settings.warmup_steps, updates, settings.final or 0.0)
    if settings.kind == "linear":
        return WarmupLinearDecay(
            settings.peak, settings.warmup_steps, updates, settings.final or 0.0
        )
    scale = 1.0 if settings.scale is None else settings.scale
    if settings.peak is not None:
        scale = settings.peak * (d_model * settings.warmup_steps) ** 0.5
    return WarmupInverseSqrt(d_model, settings.warmup_steps, scale)


def _check_positive(**arguments):
    for name, value in arguments.items():
        if not value > 0:
            raise ValueError(f"`{name}` must be positive. Received: {name}={value}.")


def _check_final(final, peak):
    if not 0 <= final <= peak:
        raise ValueError(f"`final` must be from 0 to `peak`. Received: final={final}, peak={peak}.")


def _check_decay_has_steps(warmup_steps, updates):
    if warmup_steps >= updates:
        raise ValueError(
            "`warmup_steps` must be below `updates`, the length of training. "
            f"Received: warmup_steps={warmup_steps}, updates={updates}."
        )
