"""Settings that a configuration leaves to the run that its training starts from."""

from keras_transformer.config.parts import PARTS, STACKS
from keras_transformer.tasks import TASKS

DESCRIBED = {"size", "model_type", "split_digits", "character_coverage"}  # by a run, any version
# Keys of [model] about how a run began, which another one does not inherit.
NOT_OF_WEIGHTS = {"start_from", "parts", "vectors", "freeze_vectors"}


def inherit(values, load):
    """Fills in the settings that a configuration leaves to the run that `[model] start_from` names.

    Without `preset` these are the fields of `[model]` that are not given, as far as the model of
    the task has them, and in any case the keys of `[vocabulary]` that are not given. A
    configuration that was written for a run holds everything, so that the run stays readable when
    the other one is gone.

    A task without a vocabulary inherits none.

    Args:
        values: The configuration as nested dictionaries, with a path that is resolved; changed.
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
        values["model"] = {**_inherited(theirs, values.get("task", {})), **model}
    if not described and theirs.task.get().texts:
        values["vocabulary"] = {**theirs.vocabulary.description(), **vocabulary}
        if not _has_two_sides(values.get("task", {})):
            values["vocabulary"]["shared"] = True  # it takes that of the sources


def _task_of(section):
    """The `Task` of a section `[task]`; `None` for a wrong one, which the schema reports."""
    return TASKS.get(section.get("kind", "translation")) if isinstance(section, dict) else None


def _has_two_sides(section):
    task = _task_of(section)
    return task is None or task.has_two_sides


def _inherited(theirs, section):
    """The keys of `[model]` of another run that the model of a task has as well."""
    fields = theirs.model.model_dump(exclude=NOT_OF_WEIGHTS, exclude_none=True)
    task = _task_of(section)
    if task is None or task.config_class is theirs.task.get().config_class:
        return fields
    description = task.config_class.description
    known = {name for part in PARTS for name in _options(description, part)} | {"preset"}
    own = {name: fields[name] for name in STACKS if name in fields and name in description}
    return {**{name: value for name, value in fields.items() if name in known}, **own}


def _options(description, part):
    """The options of a part that another task's model may have in common; a head is its own."""
    return () if part == "head" or part not in description else description[part].options()


def finished_run(path):
    """Returns the `Run` that `[model] start_from` names; it need not have a vocabulary.

    Raises:
        ValueError: If it is not finished.
    """
    from keras_transformer.tasks.run import Run  # imports Keras, which reading settings does not

    run = Run(path)
    run.require_finished(vocabulary=False)
    return run
