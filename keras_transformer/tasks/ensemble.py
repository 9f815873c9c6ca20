"""Ensembles of several runs, and the checks that their models can form one."""

import os
from typing import Any

from keras_transformer.checks import fields_difference
from keras_transformer.tasks.run import Run


def runs_of(path) -> list[Run]:
    """Returns a list of `Run`s.

    Args:
        path: Folder of a run, or a list of folders.

    Raises:
        TypeError: If `path` is neither.
        ValueError: If the list is empty.
    """
    if isinstance(path, (str, os.PathLike)):
        return [Run(path)]
    if not isinstance(path, (list, tuple)):
        raise TypeError(
            f"`path` must be the folder of a run, or a list of folders. Received: path={path!r}."
        )
    if not path:
        raise ValueError("`path` must name at least one run. Received: none.")
    return [Run(folder) for folder in path]


def open_ensemble(paths, max_length=None) -> Any:
    """Returns the pipeline of an ensemble.

    Args:
        paths: List of the folders of runs; a list of one opens this run.
        max_length: See `TextPipeline`.

    Raises:
        TypeError: If `paths` is no list.
        ValueError: If the models cannot form an ensemble, or a file is missing or damaged.
    """
    from keras_transformer.tasks import load

    runs = runs_of(paths)
    check_tasks(runs)
    models, kinds = zip(*map(load, runs), strict=True)
    for run, kind in zip(runs[1:], kinds[1:], strict=True):
        if kind is not kinds[0]:
            _refuse(runs[0].path, run.path, f"their models are for {kinds[0].task} and {kind.task}")
    return open_together(kinds[0], runs, models, max_length)


def open_together(kind, runs, models, max_length=None) -> Any:
    """Returns the pipeline of a run, or of an ensemble of several runs.

    The default search of an ensemble is its runs' own search, or greedy search if these differ.

    Args:
        kind: Class of the pipeline.
        runs: List of `Run`s.
        models: Their models.
        max_length: See `TextPipeline`.

    Raises:
        ValueError: If the models cannot form an ensemble, or a file is missing or damaged.
    """
    if len(runs) == 1:
        return kind.with_files_of(runs[0], models[0], max_length)
    names = [str(run.path) for run in runs]
    check_tasks(runs)
    if max_length is None and models[0].config.has_vocabulary:
        max_length = min(model.config.max_length for model in models)
    pipelines = [
        kind.with_files_of(run, model, max_length) for run, model in zip(runs, models, strict=True)
    ]
    check_together(pipelines, names)
    ensemble = pipelines[0].with_model(list(models))
    searches = {getattr(pipeline, "search", None) for pipeline in pipelines}
    return ensemble.with_search(kind.search) if len(searches) > 1 else ensemble


def check_tasks(runs) -> None:
    """Raises a `ValueError` if the settings of `Run`s name different tasks."""
    first, *others = runs
    for other in others:
        tasks = [run.task() for run in (first, other)]
        if None not in tasks and tasks[0] != tasks[1]:
            _refuse(first.path, other.path, f"their tasks are {tasks[0]} and {tasks[1]}")


def check_together(pipelines, names) -> None:
    """Requires that pipelines can form an ensemble.

    Args:
        pipelines: List of `Pipeline`s of one class.
        names: Their names in errors.

    Raises:
        ValueError: If they cannot; the error names two of them and the difference.
    """
    for other, name in zip(pipelines[1:], names[1:], strict=True):
        difference = pipelines[0].difference(other)
        if difference is not None:
            _refuse(names[0], name, difference)


def vocabulary_difference(ours, theirs) -> str | None:
    """Returns the difference of two `Tokenizers` as the end of a sentence; `None` if equal."""
    if ours.files() == theirs.files():
        return None
    for side, one, other in zip(("source", "target"), ours, theirs, strict=True):
        if one.vocab_size != other.vocab_size:
            return f"their {side} vocabularies have {one.vocab_size} and {other.vocab_size} tokens"
        both = zip(*(part.pieces(range(part.vocab_size)) for part in (one, other)), strict=True)
        for number, (piece, another) in enumerate(both):
            if piece != another:
                return f"token {number} of their {side} vocabularies is {piece!r} and {another!r}"
    return "their vocabularies have the same tokens but divide texts differently"


def metadata_difference(ours, theirs) -> str | None:
    """Returns the difference of two `Codec`s' metadata, as `vocabulary_difference` does."""
    return fields_difference(_shared_metadata(ours), _shared_metadata(theirs))


def _shared_metadata(codec):
    """Returns the metadata that models must share, with the fields of dictionaries flattened."""
    metadata = {}
    for name, value in codec.metadata().items():
        nested = value.items() if isinstance(value, dict) else ()
        metadata |= {f"{name}.{key}": field for key, field in nested} or {name: value}
    return {name: value for name, value in metadata.items() if name not in codec.own_metadata}


def _refuse(one, other, why):
    raise ValueError(f"{one} and {other} cannot form an ensemble: {why}.")
