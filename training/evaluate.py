"""Evaluation of runs on test data (section 6.1)."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_transformer.tasks import open_run
from keras_transformer.tasks.ensemble import check_tasks, runs_of
from keras_transformer.tasks.examples import errors_name
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import load_settings

if TYPE_CHECKING:
    from keras_transformer.tasks.task import Task


def evaluate_files(
    run: str | os.PathLike | Sequence[str | os.PathLike],
    source: str | os.PathLike,
    reference: str | os.PathLike | None = None,
    pipeline: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """Evaluates a run on text files.

    Args:
        run: Folder of the run, or a list of the folders of several runs, which form an ensemble.
        source: File of inputs, one per line.
        reference: File of expected outputs, such as translations or labels, one per line. `None`
            for a task with one column.
        pipeline: Pipeline to evaluate, such as a `Translator` with a shortlist. `None`: the
            pipeline that `open_run` returns.
        **options: Options of the task's `evaluate`.

    Returns:
        The results of the task's `evaluate`, a dictionary; for several runs also their folders,
        `runs`.

    Raises:
        ValueError: If a file is not UTF-8, the files differ in their number of lines, the task
            needs other files, or several runs cannot form an ensemble.
    """
    task, runs = task_of(run), runs_of(run)
    columns = columns_of_files(run, source, reference)
    with errors_name(places(runs[0], reference=reference)):
        return _evaluate(task, runs, pipeline, columns, options)


def columns_of_files(run, source, reference=None) -> Sequence[list]:
    """Returns the columns of files on which a run is evaluated; see `evaluate_files`.

    Raises:
        ValueError: If the task needs more or fewer files, or a file cannot be used.
    """
    task, runs = task_of(run), runs_of(run)
    files = task.file_columns or task.columns
    if (len(files) > 1) != (reference is not None):
        raise ValueError(
            f"{_named(runs)} is a run for {task.name}, whose data have "
            f"{' and '.join(files)}: evaluation needs "
            f"{'two files' if reference is None else 'one file'}."
        )
    return task.read_files(source, reference)


def evaluate_split(
    run: str | os.PathLike | Sequence[str | os.PathLike],
    split: str = "test",
    pipeline: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """Evaluates a run on a split of its own data.

    Results for the test split are also written to the `metrics.json` of the run.

    Args:
        run: Folder of the run, or a list of the folders of several runs, which form an ensemble.
            The results of an ensemble are not written to any run.
        split: `"train"`, `"validation"` or `"test"`.
        pipeline: See `evaluate_files`.
        **options: Options of the task's `evaluate`.

    Returns:
        The results of the task's `evaluate`, a dictionary; for several runs also their folders,
        `runs`.

    Raises:
        ValueError: If several runs cannot form an ensemble, or their data differ in this split.
    """
    task, runs = task_of(run), runs_of(run)
    columns = columns_of_split(runs[0], split)
    for other in runs[1:]:
        if not _equal(columns, columns_of_split(other, split)):
            raise ValueError(
                f"{runs[0].path} and {other.path} have different data in the split {split}: name "
                "files on which to evaluate both."
            )
    with errors_name(places(runs[0], split)):
        results = _evaluate(task, runs, pipeline, columns, options)
    if split == "test" and len(runs) == 1:
        metrics = {("test_seconds" if k == "seconds" else k): v for k, v in results.items()}
        runs[0].update_metrics(**metrics)
    return results


def task_of(run) -> "Task":
    """Returns the `Task` of a run, or the common task of several runs.

    Args:
        run: Folder of the run, or a list of the folders of several runs.

    Raises:
        ValueError: If a run has no settings, or several runs have different tasks.
    """
    runs = runs_of(run)
    for folder in runs:
        if not folder.config.is_file():
            folder.require_finished(vocabulary=False)
    check_tasks(runs)
    return load_settings(runs[0].config).task.get()


def _evaluate(task, runs, pipeline, columns, options):
    """Returns the results of an evaluation, with the folders if there are several runs."""
    folders = [run.path for run in runs]
    if pipeline is None:
        pipeline = open_run(folders[0] if len(folders) == 1 else folders)
    results = task.evaluate(pipeline, columns, **options)
    return results if len(runs) == 1 else {**results, "runs": [str(path) for path in folders]}


def columns_of_split(run, split) -> list[list]:
    """Returns the columns of a split on which a `Run` is evaluated: see `read_columns`."""
    task = task_of(run.path)
    run.require_finished(bool(task.texts))
    data = _source_of(run, task)
    data.check_split(split)
    return read_columns(data, task, split)


def places(run, split=None, reference=None) -> Callable[[int], str]:
    """Returns the function from the number of an example to its place, for errors.

    Args:
        run: The `Run`.
        split: Split of the run's own data. `None`: a file is evaluated.
        reference: Path of the file of expected outputs.
    """
    if split is None:
        return lambda number: f"{reference}, line {number}"
    task = task_of(run.path)
    return lambda number: _source_of(run, task).place(split, number, task.columns[-1])


def _source_of(run, task):
    return open_source(load_settings(run.config).data, task.columns)


def _equal(ours, theirs):
    """Returns `True` if two lists of columns, of strings or of arrays, are equal.

    Unknown values, NaN, are equal to each other.
    """
    return len(ours) == len(theirs) and all(
        len(one) == len(other) and all(map(_same, one, other))
        for one, other in zip(ours, theirs, strict=True)
    )


def _same(one, other):
    """Returns `True` if two strings or arrays are equal; NaN equals NaN."""
    of_numbers = np.issubdtype(np.asarray(one).dtype, np.floating)
    return np.array_equal(one, other, equal_nan=of_numbers)


def _named(runs):
    return " and ".join(str(run.path) for run in runs)


def read_columns(data, task, split, limit=None) -> list[list]:
    """Returns the examples of a split for an evaluation: inputs and expected outputs, if any.

    Args:
        data: A `Source`.
        task: The `Task`: see its `examples`.
        split: Name of the split.
        limit: Maximum number of examples, which `Task.validation_rows` chooses. `None`: all.
    """
    rows = data.requests(split)
    rows = rows if limit is None else task.validation_rows(rows, limit)
    columns = {name: [] for name in task.columns}
    for row in rows.as_numpy_iterator():
        for name, value in zip(task.columns, row, strict=True):
            columns[name].append(value.decode() if isinstance(value, bytes) else value)
    return task.examples(columns)
