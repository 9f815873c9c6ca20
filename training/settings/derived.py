"""Default values of a configuration that depend on the size of the data.

The paper's values suit its 4.5 million pairs. In its 100,000 updates a few thousand examples would
be read a thousand times, and a short run would end within its 4,000 updates of warm-up.
Therefore values that are omitted are proportional to the paper's, and at most as large:

- `training.updates`: 20 epochs, as many as the paper's 100,000 updates of 25,000 tokens; at least
  1,000, because in fewer updates a model learns little from any amount of data; at most 100,000;
  and at least twice a given `schedule.warmup_steps`.
- `schedule.warmup_steps`: a tenth of the updates, at most the paper's 4,000.
- `schedule.peak`, for Eq. 3 with such a shorter warm-up: the rate that Eq. 3 reaches after 4,000
  updates. A shorter warm-up alone would give a higher peak, three times as high after 400 updates.
- `schedule.kind` and `schedule.peak` of a run that starts from another one (`model.start_from`), if
  neither is given nor another key that decides about the rate: `linear`, and the task's
  `tuning_rate`. With adapters (`training.lora`), the rate is ten times as high.
- `training.validate_every` and, without `training.checkpoint_epochs`, `training.checkpoint_every`:
  a tenth of the updates, at most 1,000.
- `vocabulary.size`: 4,000, or the largest size that the text allows if that is smaller; if the text
  has more than 4,000 characters, twice their number. `take_tokenizers` determines it.

A run keeps these values in its `config.toml` and resumes with them.
"""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keras_transformer.training.settings.schema import Settings

PASSES = 20
SHORTEST, LONGEST = 1_000, 100_000  # updates
WARMUP = 4_000
INTERVAL = 1_000
VOCABULARY = 4_000  # tokens
LORA = 10  # times the rate of all weights, because adapters begin without an effect
KEYS = {
    "training": ("updates", "validate_every", "checkpoint_every"),
    "schedule": ("kind", "warmup_steps", "peak"),
    "vocabulary": ("size",),
}
OF_A_SCHEDULE = {"training.updates", "schedule.warmup_steps", "schedule.peak"}


def left_out(settings) -> list[str]:
    """Returns a list of the dotted keys whose numbers depend on the data."""
    return [
        f"{section}.{key}"
        for section, keys in KEYS.items()
        for key in keys
        if _is_missing(settings, section, key) and _matters(settings, section, key)
    ]


def derive(settings, steps, d_model, vocab_size=None) -> "Settings":
    """Returns `Settings` with all numbers that depend on the data.

    Args:
        settings: The `Settings`.
        steps: Number of updates in an epoch.
        d_model: Width of the model, in features.
        vocab_size: Size of the vocabulary. `None`: the task has none.
    """
    updates, warmup = settings.training.updates, settings.schedule.warmup_steps
    if updates is None:
        updates = max(min(PASSES * steps, LONGEST), SHORTEST, 2 * (warmup or 0))
    interval = min(math.ceil(updates / 10), INTERVAL)
    warmup = min(max(updates // 10, 1), WARMUP)
    peak = float(f"{(d_model * WARMUP) ** -0.5:.3g}") if warmup < WARMUP else None
    if settings.is_tuning:
        times = 1 if settings.training.lora is None else LORA
        peak = settings.task.get().tuning_rate * times
    return _filled(
        settings,
        {
            "training.updates": updates,
            "training.validate_every": interval,
            "training.checkpoint_every": interval,
            # A single update cannot rise and fall.
            "schedule.kind": "linear" if updates > 1 else "constant",
            "schedule.warmup_steps": warmup,
            "schedule.peak": peak,
            "vocabulary.size": vocab_size,
        },
        left_out(settings),
    )


def complete(settings, before) -> "Settings":
    """Returns the `Settings` of a resumed run, completed with the values that it began with.

    Args:
        settings: The `Settings` with which the run resumes.
        before: The `Settings` in its folder.
    """
    names = left_out(settings)
    schedule = settings.schedule
    if schedule.kind == "inverse_sqrt" and schedule.peak is schedule.scale is None:
        names = dict.fromkeys([*names, "schedule.peak"])  # even if the warm-up is given
    sections = {name.partition(".")[0] for name in names}
    theirs = {section: getattr(before, section).model_dump() for section in sections}
    numbers = {f"{section}.{key}": n for section in theirs for key, n in theirs[section].items()}
    if before.schedule.scale is not None:
        numbers["schedule.peak"] = None
    return _filled(settings, numbers, names)


def check_length(settings, completed) -> None:
    """Checks that a resumed run is not made shorter than the warm-up that it began with.

    Args:
        settings: The `Settings` as they were written.
        completed: The result of `complete` for them.

    Raises:
        ValueError: If the settings omit the warm-up and `training.updates` is below it.
    """
    updates, shortest = completed.training.updates, completed.schedule.shortest
    follows = settings.schedule.warmup_steps is None
    if follows and None not in (updates, shortest) and updates < shortest:
        raise ValueError(
            f"`training.updates` must be at least {shortest}: the run began with a warm-up of "
            f"{completed.schedule.warmup_steps} updates. Received: training.updates={updates}."
        )


def _filled(settings, numbers, names):
    """Returns settings with the numbers of some keys filled in."""
    changes = {}
    for name in names:
        section, _, key = name.partition(".")
        changes.setdefault(section, {})[key] = numbers[name]
    return settings.model_copy(
        update={
            section: getattr(settings, section).model_copy(update=values)
            for section, values in changes.items()
        }
    )


def _is_missing(settings, section, key):
    """Returns `True` if a key is not given."""
    if (section, key) == ("schedule", "kind"):  # whose default is not `None`
        return settings.is_tuning
    return getattr(getattr(settings, section), key) is None


def _matters(settings, section, key):
    """Returns `True` if an omitted number depends on the data."""
    if section == "vocabulary":
        return bool(settings.task.get().texts)
    if key == "checkpoint_every":
        return settings.training.checkpoint_epochs is None
    schedule = settings.schedule
    if key == "peak":  # with a given warm-up, the peak follows from Eq. 3
        return settings.is_tuning or (
            schedule.kind == "inverse_sqrt"
            and schedule.warmup_steps is None
            and schedule.scale is None
        )
    return True
