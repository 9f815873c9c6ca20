"""Settings that a run may change when it goes on, and what follows from a change."""

from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.schedule import make_schedule
from keras_transformer.training.settings.toml import SettingsError, differences

# Under one of these a training that stopped early may go on, or its model may become another one.
REOPENS = {"training.best_by", "training.patience", "training.final_model"}


def check_changes(run, before, settings):
    """Refuses changes of what has decided what a run has learned so far.

    Args:
        run: A `Run` with checkpoints or a model.
        before: The `Settings` that it has.
        settings: The `Settings` that it is to go on with.

    Raises:
        SettingsError: If a key that must stay has changed, or the training is to be shorter than
            it is by now. One line, with every key and both its values.
    """
    free = _free(settings)
    fixed = [key for key in differences(before, settings) if key not in free]
    if fixed:
        changes = ", ".join(
            f"{key} ({_value(before, key)}, now {_value(settings, key)})" for key in fixed
        )
        raise SettingsError(
            f"{run.path} was begun with other settings: {changes} cannot change in a run that goes "
            f"on. What can: {', '.join(free)}. {run.config} has the settings it was begun with. To "
            f'begin with its weights in another folder: [model] start_from = "{run.path}".'
        )
    done, total = Checkpoints(run.checkpoints).newest(), settings.training.updates
    if total is not None and total < done:
        raise SettingsError(
            f"training.updates must be at least {done:,}: so many updates {run.path} has done. "
            f"Received: training.updates={total}."
        )


def describe_changes(before, settings, update):
    """Returns the lines that show what is different from here on.

    Args:
        before: The `Settings` until now.
        settings: The `Settings` from now on.
        update: Updates done.
    """
    changes = [
        f"{key} from {_value(before, key)} to {_value(settings, key)}"
        for key in differences(before, settings)
    ]
    if not changes:
        return []
    lines = [f"Going on with changed settings: {', '.join(changes)}."]
    then, now = (_rate(version, update) for version in (before, settings))
    if then != now:
        total = settings.training.updates
        lines.append(
            f"The learning rate follows the schedule of a training of {total:,} updates from here "
            f"on: {now:.3g} in the next update, where it would have been {then:.3g}."
        )
    return lines


def describe_derived(settings, derived):
    """Returns the line that shows the numbers that the data have decided; empty without any.

    Args:
        settings: The `Settings` as they were written.
        derived: What `derive` returned for them.
    """
    numbers = ", ".join(f"{key} = {_value(derived, key)}" for key in differences(settings, derived))
    return f"Chosen by the size of the data, as they are not set: {numbers}." if numbers else ""


def _free(settings):
    """The dotted keys that may change, which the sections themselves declare."""
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
    return "nothing" if value is None else repr(value)


def _rate(settings, update):
    """The learning rate of the update after `update`."""
    width = settings.config().d_model
    schedule = make_schedule(settings.schedule, width, settings.training.updates)
    return float(schedule(update))
