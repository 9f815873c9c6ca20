"""Changes of settings when a run resumes."""

from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.schedule import make_schedule
from keras_transformer.training.settings.fields import Section
from keras_transformer.training.settings.toml import SettingsError, differences

# Changes of these may let a run continue that stopped early, or select another model.
REOPENS = {"training.best_by", "training.patience", "training.final_model"}


def check_changes(run, before, settings) -> None:
    """Checks that new settings differ only in keys that may change when a run resumes.

    Args:
        run: A `Run` with checkpoints or a model.
        before: The previous `Settings` of the run.
        settings: The `Settings` with which it resumes.

    Raises:
        SettingsError: If another key has changed, or `training.updates` is below the number of
            updates done. One line, with every key and both its values.
    """
    free = _free(settings)
    fixed = [key for key in differences(before, settings) if key not in free]
    if fixed:
        changes = ", ".join(
            f"{key} ({_value(before, key)}, now {_value(settings, key)})" for key in fixed
        )
        raise SettingsError(
            f"{run.path} was started with other settings: {changes} cannot change when a run "
            f"resumes. These keys can: {', '.join(free)}. {run.config} has the settings of the "
            "run. To start another run from its weights, set [model] start_from = "
            f'"{run.path}".'
        )
    done, total = Checkpoints(run.checkpoints).newest(), settings.training.updates
    if total is not None and total < done:
        raise SettingsError(
            f"training.updates must be at least {done:,}, the number of updates that {run.path} "
            f"has done. Received: training.updates={total}."
        )


def describe_changes(before, settings, update) -> list[str]:
    """Returns lines that describe the changes of a run that resumes, a list.

    Args:
        before: The previous `Settings`.
        settings: The `Settings` from now on.
        update: Number of updates done.
    """
    changes = [
        f"{key} from {_value(before, key)} to {_value(settings, key)}"
        for key in differences(before, settings)
    ]
    if not changes:
        return []
    lines = [f"Resuming with changed settings: {', '.join(changes)}."]
    then, now = (_rate(version, update) for version in (before, settings))
    if then != now:
        total = settings.training.updates
        lines.append(
            "From here on, the learning rate follows the schedule of a run of "
            f"{total:,} updates: {now:.3g} in the next update instead of {then:.3g}."
        )
    return lines


def describe_derived(settings, derived) -> str:
    """Returns a line with the values that depend on the data; an empty string if there are none.

    It lacks the schedule of a run that starts from another one, which depends on the task.

    Args:
        settings: The `Settings` as they were written.
        derived: The result of `derive` for them.
    """
    hidden = {"schedule.kind", "schedule.peak"} if settings.is_tuning else set()
    keys = [key for key in differences(settings, derived) if key not in hidden]
    numbers = ", ".join(f"{key} = {_value(derived, key)}" for key in keys)
    return f"Settings chosen from the size of the data: {numbers}." if numbers else ""


def describe_rate(settings, d_model) -> str:
    """Returns a line about the learning rate.

    Args:
        settings: The `Settings`, with all values that depend on the data.
        d_model: Width of the model, in features.
    """
    schedule, updates = settings.schedule, settings.training.updates
    highest = float(make_schedule(schedule, d_model, updates)(schedule.warmup_steps - 1))
    end = f"to {schedule.final or 0:.3g} at update {updates:,}"
    shape = {
        "inverse_sqrt": "then falling with the inverse square root of the update",
        "linear": f"then falling in a straight line {end}",
        "cosine": f"then falling along a cosine {end}",
        "constant": "then constant",
    }[schedule.kind]
    return f"Learning rate: {highest:.3g} at update {schedule.warmup_steps:,}, {shape}."


def _free(settings):
    """Returns the dotted keys that may change, as the sections declare them."""
    sections = {name: getattr(settings, name) for name in type(settings).model_fields}
    return [
        f"{name}.{key}"
        for name, section in sections.items()
        for key in getattr(section, "may_change", ())
        if key in type(section).model_fields
    ]


def _value(settings, key):
    section, _, name = key.partition(".")
    value = getattr(getattr(settings, section), name, None)
    if isinstance(value, Section):
        value = value.model_dump(exclude_none=True)
    return "nothing" if value is None else repr(value)


def _rate(settings, update):
    """Returns the learning rate of the update after `update`."""
    width = settings.config().d_model
    schedule = make_schedule(settings.schedule, width, settings.training.updates)
    return float(schedule(update))
