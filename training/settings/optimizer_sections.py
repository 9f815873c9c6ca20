"""The sections `[optimizer]` and `[schedule]`."""

from typing import Literal

from pydantic import Field, model_validator

from keras_transformer.training.settings.fields import FROM_DATA, Positive, Rate, Section


class OptimizerSettings(Section):
    """Adam with the paper's constants (section 5.3), or AdamW."""

    kind: Literal["adam", "adamw"] = Field("adam", description="The optimizer.")
    weight_decay: float | None = Field(
        None,
        gt=0,
        description="For AdamW: share of each weight that an update subtracts, times the learning "
        "rate. Only matrices decay; biases, layer normalisations and tables of embeddings and "
        "positions do not.",
    )
    beta_1: Rate = Field(0.9, description="Decay rate of the mean of gradients.")
    beta_2: Rate = Field(0.98, description="Decay rate of the mean of squared gradients.")
    epsilon: float = Field(
        1e-9, gt=0, description="Constant added to the root of the mean of squared gradients."
    )
    clip_norm: float | None = Field(
        None,
        gt=0,
        description="Maximum norm of the gradient of all weights together; a longer gradient is "
        "scaled down.",
    )
    ema_momentum: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Momentum of a moving average of the weights, which validation and the final "
        "model then use.",
    )

    @model_validator(mode="after")
    def _decay_is_adamws(self):
        if self.kind == "adamw" and self.weight_decay is None:
            raise ValueError('`kind = "adamw"` needs `weight_decay`, for example 0.01.')
        if self.kind == "adam" and self.weight_decay is not None:
            raise ValueError('`weight_decay` needs `kind = "adamw"`.')
        return self


# A given one decides about the learning rate, and so about the others.
RATES = {"kind", "peak", "scale", "final"}


class ScheduleSettings(Section):
    """The learning rate, which rises linearly in the warm-up and then falls or stays constant.

    The paper's warm-up of 4,000 updates is a twenty-fifth of its training, but would be most of a
    short run. If omitted, the warm-up is therefore a tenth of the updates, at most 4,000. With a
    shorter warm-up, Eq. 3 of the paper has a higher peak. Therefore, the peak is then the rate of
    Eq. 3 after 4,000 updates.
    """

    kind: Literal["inverse_sqrt", "linear", "cosine", "constant"] = Field(
        "inverse_sqrt",
        description="Shape after the warm-up: Eq. 3 of the paper; a straight line or half a cosine "
        "that ends at `final` in the last update; or constant. With `model.start_from`, if neither "
        "`kind`, `peak`, `scale` nor `final` is given: `linear`.",
    )
    warmup_steps: Positive | None = Field(
        None,
        description="Length of the warm-up in updates; 1 for no warm-up. It must not exceed "
        "`updates`. If omitted: a tenth of the updates, at most 4,000.",
        json_schema_extra=FROM_DATA,
    )
    scale: float | None = Field(
        None, gt=0, description='Factor on Eq. 3, for `kind = "inverse_sqrt"` without `peak`.'
    )
    peak: float | None = Field(
        None,
        gt=0,
        description='Highest learning rate. It is optional for `kind = "inverse_sqrt"`. If '
        "omitted: the peak of Eq. 3; or, if `warmup_steps` is omitted too and is below 4,000, the "
        "rate of Eq. 3 after 4,000 updates. With `model.start_from`, if neither `kind`, `peak`, "
        "`scale` nor `final` is given: a rate for fine-tuning, 0.00005; for translation and "
        "summarisation 0.00003, for speech recognition 0.00001; ten times as high with "
        "`training.lora`.",
    )
    final: float | None = Field(
        None,
        ge=0,
        description='Learning rate of the last update, for `kind = "linear"` or `"cosine"`; at '
        "most `peak`. With a rate that does not fall to zero, the last checkpoints still differ, "
        "and their average gains more. If omitted: 0.",
    )

    @model_validator(mode="after")
    def _one_height(self):
        if self.kind != "inverse_sqrt" and self.peak is None:
            raise ValueError(f'`kind = "{self.kind}"` needs `peak`, the highest learning rate.')
        if self.scale is not None and (self.kind != "inverse_sqrt" or self.peak is not None):
            raise ValueError(
                '`scale` belongs to `kind = "inverse_sqrt"` without `peak`; remove one of them.'
            )
        return self

    @model_validator(mode="after")
    def _ends_below_the_peak(self):
        if self.final is None:
            return self
        if self.kind not in ("linear", "cosine"):
            raise ValueError(
                f'`final` belongs to `kind = "linear"` or `"cosine"`: with `"{self.kind}"` it has '
                "no effect; remove it."
            )
        if self.peak is not None and self.final > self.peak:
            raise ValueError(
                "`final` must not exceed `peak`, the highest learning rate. Received: "
                f"final={self.final}, peak={self.peak}."
            )
        return self

    @property
    def shortest(self) -> int | None:
        """Length of the shortest training with this warm-up, in updates. `None`: no warm-up set."""
        falls = self.kind in ("linear", "cosine")  # in at least one more update
        return None if self.warmup_steps is None else self.warmup_steps + falls

    def check_length(self, updates) -> None:
        """Raises a `ValueError` if a run is too short for its warm-up.

        Args:
            updates: Length of training, in updates. `None`: it will depend on the data.
        """
        if updates is None:
            return
        falls = self.kind in ("linear", "cosine")
        if self.warmup_steps is None and updates <= falls:
            raise ValueError(
                f'`training.updates` must be at least 2 with `schedule.kind = "{self.kind}"`, '
                "whose rate rises before it falls. "
                f"Received: training.updates={updates}."
            )
        if self.warmup_steps is not None and updates < self.shortest:
            raise ValueError(
                f"`schedule.warmup_steps` must be {'below' if falls else 'at most'} "
                f"`training.updates`, the length of training. Received: "
                f"schedule.warmup_steps={self.warmup_steps}, training.updates={updates}."
            )
