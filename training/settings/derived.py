"""Numbers that a configuration leaves out, and that follow from the size of the data.

The paper's numbers are those of 4.5 million pairs. A few thousand examples would be read a thousand
times in its 100,000 updates, and a short training would end within its 4,000 updates of warm-up. So
what is left out has the paper's proportions, up to the paper's numbers:

- `training.updates`: 20 times through the training data, which is what the paper's 100,000 updates
  of 25,000 tokens are; at least 1,000, without which a model learns little of however few data,
  and at most 100,000. A warm-up that is given is at most half of it.
- `schedule.warmup_steps`: a tenth of the updates, at most the paper's 4,000.
- `schedule.peak`, where Eq. 3 has that shorter warm-up: what Eq. 3 reaches after 4,000 updates. By
  itself it would rise to more the sooner it turns, to three times as much after 400.
- `training.validate_every` and `training.checkpoint_every`: a tenth of the updates, at most 1,000.
- `vocabulary.size`: 4,000, or as many pieces as the text gives if these are fewer; where it has
  more characters, twice as many as it has. `take_tokenizers` finds out.

A run keeps them in its `config.toml`, and goes on with them.
"""

import math

PASSES = 20
SHORTEST, LONGEST = 1_000, 100_000  # updates
WARMUP = 4_000
INTERVAL = 1_000
VOCABULARY = 4_000  # pieces
KEYS = {
    "training": ("updates", "validate_every", "checkpoint_every"),
    "schedule": ("warmup_steps", "peak"),
    "vocabulary": ("size",),
}
OF_A_SCHEDULE = {"training.updates", "schedule.warmup_steps", "schedule.peak"}


def left_out(settings):
    """Returns the dotted keys of `Settings` whose numbers follow from the data, a list."""
    return [
        f"{section}.{key}"
        for section, keys in KEYS.items()
        for key in keys
        if getattr(getattr(settings, section), key) is None and _matters(settings, section, key)
    ]


def derive(settings, steps, d_model, vocab_size=None):
    """Returns `Settings` in which no number is left out.

    Args:
        settings: The `Settings`.
        steps: Updates in which all training data are seen once.
        d_model: Width of the model.
        vocab_size: Number of pieces of the vocabulary, of a task that has one.
    """
    updates, warmup = settings.training.updates, settings.schedule.warmup_steps
    if updates is None:
        updates = max(min(PASSES * steps, LONGEST), SHORTEST, 2 * (warmup or 0))
    interval = min(math.ceil(updates / 10), INTERVAL)
    warmup = min(max(updates // 10, 1), WARMUP)
    peak = float(f"{(d_model * WARMUP) ** -0.5:.3g}") if warmup < WARMUP else None
    return _filled(
        settings,
        {
            "training.updates": updates,
            "training.validate_every": interval,
            "training.checkpoint_every": interval,
            "schedule.warmup_steps": warmup,
            "schedule.peak": peak,
            "vocabulary.size": vocab_size,
        },
        left_out(settings),
    )


def complete(settings, before):
    """Returns `Settings` that have the numbers of a run where they leave them out.

    Args:
        settings: The `Settings` that the run is to go on with.
        before: Those that it has.
    """
    names = left_out(settings)
    schedule = settings.schedule
    if schedule.kind == "inverse_sqrt" and schedule.peak is schedule.scale is None:
        names = dict.fromkeys([*names, "schedule.peak"])  # also beside a warm-up that is given
    sections = {name.partition(".")[0] for name in names}
    theirs = {section: getattr(before, section).model_dump() for section in sections}
    numbers = {f"{section}.{key}": n for section in theirs for key, n in theirs[section].items()}
    if before.schedule.scale is not None:
        numbers["schedule.peak"] = None
    return _filled(settings, numbers, names)


def check_length(settings, completed):
    """Refuses a training that was made shorter than its warm-up, which the settings leave out.

    Args:
        settings: The `Settings` as they were written.
        completed: What `complete` returned for them.

    Raises:
        ValueError: If it is.
    """
    updates, shortest = completed.training.updates, completed.schedule.shortest
    follows = settings.schedule.warmup_steps is None
    if follows and None not in (updates, shortest) and updates < shortest:
        raise ValueError(
            f"`training.updates` must be at least {shortest}: the run was begun with a warm-up of "
            f"{completed.schedule.warmup_steps} updates. Received: training.updates={updates}."
        )


def _filled(settings, numbers, names):
    """Settings with the numbers of some keys."""
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


def _matters(settings, section, key):
    """Returns whether a number that is left out follows from the data."""
    if section == "vocabulary":
        return bool(settings.task.get().texts)
    schedule = settings.schedule
    if key == "peak":  # left out beside a warm-up that is given, it is Eq. 3's own
        return (
            schedule.kind == "inverse_sqrt"
            and schedule.warmup_steps is None
            and schedule.scale is None
        )
    return True
