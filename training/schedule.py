"""Learning rates as functions of the update."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_positive
from keras_transformer.tensors import Tensor


class _Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """Base of schedules whose fields are numbers above 0, except `final`."""

    def __post_init__(self):
        for name, value in vars(self).items():
            if name != "final":
                check_positive(name, value)

    def __call__(self, step: Tensor) -> Tensor:
        return self.rate(ops.cast(step, "float32") + 1.0)

    def rate(self, n: Tensor) -> Tensor:
        """Returns the learning rate of update `n`, counted from 1."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@keras.saving.register_keras_serializable(package="keras_transformer")
@dataclasses.dataclass(eq=False)
class WarmupInverseSqrt(_Warmup):
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

    d_model: int
    warmup_steps: int = 4000
    scale: float = 1.0

    def rate(self, n: Tensor) -> Tensor:
        rise = n * self.warmup_steps**-1.5
        return self.scale * self.d_model**-0.5 * ops.minimum(ops.rsqrt(n), rise)


@keras.saving.register_keras_serializable(package="keras_transformer")
@dataclasses.dataclass(eq=False)
class WarmupLinearDecay(_Warmup):
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

    peak: float
    warmup_steps: int
    updates: int
    final: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        _check_decay(self.peak, self.warmup_steps, self.updates, self.final)

    def rate(self, n: Tensor) -> Tensor:
        rise = n / self.warmup_steps
        fall = (self.updates - n) / (self.updates - self.warmup_steps)
        share = self.final / self.peak  # of the peak, after the last update
        fall = share + (1 - share) * ops.maximum(fall, 0.0)
        return self.peak * ops.minimum(rise, fall)


@keras.saving.register_keras_serializable(package="keras_transformer")
@dataclasses.dataclass(eq=False)
class WarmupConstant(_Warmup):
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

    peak: float
    warmup_steps: int

    def rate(self, n: Tensor) -> Tensor:
        return self.peak * ops.minimum(n / self.warmup_steps, 1.0)


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
    for name, value in {"peak": peak, "warmup_steps": warmup_steps, "updates": updates}.items():
        check_positive(name, value)
    _check_decay(peak, warmup_steps, updates, final)
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
    rise = settings.peak, settings.warmup_steps
    if settings.kind == "constant":
        return WarmupConstant(*rise)
    if settings.kind in ("cosine", "linear"):
        decay = warmup_cosine if settings.kind == "cosine" else WarmupLinearDecay
        return decay(*rise, updates, settings.final or 0.0)
    scale = 1.0 if settings.scale is None else settings.scale
    if settings.peak is not None:
        scale = settings.peak * (d_model * settings.warmup_steps) ** 0.5
    return WarmupInverseSqrt(d_model, settings.warmup_steps, scale)


def _check_decay(peak, warmup_steps, updates, final):
    if warmup_steps >= updates:
        raise ValueError(
            "`warmup_steps` must be below `updates`, the length of training. "
            f"Received: warmup_steps={warmup_steps}, updates={updates}."
        )
    if not 0 <= final <= peak:
        raise ValueError(f"`final` must be from 0 to `peak`. Received: final={final}, peak={peak}.")
