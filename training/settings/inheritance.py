"""Settings that a configuration inherits from the run whose weights training starts with."""

from typing import TYPE_CHECKING

from keras_transformer.config.parts import PARTS, STACKS
from keras_transformer.mixers import in_table, overridden
from keras_transformer.tasks import TASKS
from keras_transformer.variants import BASES, KIND

if TYPE_CHECKING:
    from keras_transformer.tasks.run import Run

# Keys of [vocabulary] that the configuration of a run has, in every version of the package.
DESCRIBED = {"size", "model_type", "split_digits", "character_coverage"}
# Keys of [model] about the initial weights of a run, which another run does not inherit.
NOT_OF_WEIGHTS = {"start_from", "parts", "shrink", "vectors", "freeze_vectors"}


def inherit(values, load) -> None:
    """Fills in settings from the run that `[model] start_from` names.

    If `preset` is not given, these are the missing keys of `[model]` that the model of the task
    has. A table changes only its own keys of an inherited table, unless it names another kind. In
    any case they include the missing keys of `[vocabulary]`, unless the task has no vocabulary. The
    configuration in the folder of a run has every key, so that the run stays readable after the
    other run is removed.

    Args:
        values: The configuration as nested dictionaries with resolved paths; changed in place.
        load: Function from the path of a configuration to its `Settings`.

    Raises:
        ValueError: If the other run cannot be read.
    """
    model, vocabulary = values.get("model"), values.get("vocabulary", {})
    if not (isinstance(model, dict) and isinstance(vocabulary, dict)):
        return
    described = vocabulary.keys() >= DESCRIBED
    if not isinstance(model.get("start_from"), str) or ("preset" in model and described):
        return
    theirs = load(finished_run(model["start_from"]).config)
    if "preset" not in model:
        values["model"] = _changed(_inherited(theirs, values.get("task", {})), model)
    if not described and theirs.task.get().texts:
        values["vocabulary"] = {**theirs.vocabulary.description(), **vocabulary}
        if not _has_two_sides(values.get("task", {})):
            values["vocabulary"]["shared"] = True  # the vocabulary of the sources


def _task_of(section):
    """Returns the `Task` of a `[task]` section; `None` if it is wrong, which the schema reports."""
    return TASKS.get(section.get("kind", "translation")) if isinstance(section, dict) else None


def _has_two_sides(section):
    task = _task_of(section)
    return task is None or task.has_two_sides


def _inherited(theirs, section):
    """Returns the keys of another run's `[model]` that the model of a task has as well."""
    fields = theirs.model.model_dump(exclude=NOT_OF_WEIGHTS, exclude_none=True)
    task = _task_of(section)
    if task is None or task.config_class is theirs.task.get().config_class:
        return fields
    description = task.config_class.description
    known = {name for part in PARTS for name in _options(description, part)} | {"preset"}
    own = {name: fields[name] for name in STACKS if name in fields and name in description}
    return {**{name: value for name, value in fields.items() if name in known}, **own}


def _changed(theirs, ours):
    """Returns inherited options of a model or a stack with others instead."""
    # An option of attention stands in the table `mixer` or beside it: ours replaces both.
    beside = {key: value for key, value in ours.items() if key != "mixer"}
    theirs = {key: value for key, value in theirs.items() if key not in in_table(ours)}
    if "mixer" in theirs:
        theirs["mixer"] = overridden(theirs, beside)["mixer"]
    return {**theirs, **{key: _changed_value(key, theirs.get(key), ours[key]) for key in ours}}


def _changed_value(key, theirs, ours):
    """Returns an option; a table changes an inherited table of the same kind, or name of a kind."""
    if isinstance(theirs, str):
        theirs = {KIND: theirs}
    if not (isinstance(theirs, dict) and isinstance(ours, dict)):
        return ours
    if key in STACKS:
        return _changed(theirs, ours)
    default = BASES[key].default_kind if key in BASES else None
    kind = theirs.get(KIND, default)
    return {**theirs, **ours} if ours.get(KIND, kind) == kind else ours


def _options(description, part):
    """Returns the options of a part that models of different tasks share; heads share none."""
    return () if part == "head" or part not in description else description[part].options()


def finished_run(path) -> "Run":
    """Returns the finished `Run` that `[model] start_from` names, with or without a vocabulary.

    Raises:
        ValueError: If the run is not finished.
    """
    from keras_transformer.tasks.run import Run  # imports Keras, which is slow

    run = Run(path)
    run.require_finished(vocabulary=False)
    return run
