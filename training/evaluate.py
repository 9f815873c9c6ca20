"""Measuring a run on test data (section 6.1)."""

import numpy as np

from keras_transformer.tasks import open_run
from keras_transformer.tasks.ensemble import check_tasks, runs_of
from keras_transformer.training.data.sources import open_source
from keras_transformer.training.settings.toml import load_settings


def evaluate_files(run, source, reference=None, pipeline=None, **options):
    """Evaluates a run on text files.

    Args:
        run: Folder of the run, or a list of several, which answer together.
        source: File of inputs, one per line.
        reference: File of what belongs to them, line by line, such as translations or labels.
            `None` for a task with one column.
        pipeline: What the run's model is used by, such as a `Translator` with a shortlist. `None`:
            as `open_run` returns it.
        **options: Those of the task's `evaluate`.

    Returns:
        The dictionary of the task's `evaluate`; of several runs it also has `runs`, their folders.

    Raises:
        ValueError: If a file is not UTF-8, they differ in their number of lines, or the task needs
            other files; or if several runs do not fit together.
    """
    task, runs = task_of(run), runs_of(run)
    files = task.file_columns or task.columns
    if (len(files) > 1) != (reference is not None):
        raise ValueError(
            f"{_named(runs)} is a run for {task.name}, whose data have "
            f"{' and '.join(files)}: evaluating files takes "
            f"{'two of them' if reference is None else 'one of them'}."
        )
    return _evaluate(task, runs, pipeline, task.read_files(source, reference), options)


def evaluate_split(run, split="test", pipeline=None, **options):
    """Evaluates a run on a split of its own data; the test split's figures stay in the run.

    Args:
        run: Folder of the run, or a list of several, which answer together. The figures of several
            stay in none of them.
        split: `"train"`, `"validation"` or `"test"`.
        pipeline: See `evaluate_files`.
        **options: Those of the task's `evaluate`.

    Returns:
        The dictionary of the task's `evaluate`; of several runs it also has `runs`, their folders.
        For the test split `metrics.json` of the run also has it.

    Raises:
        ValueError: If several runs do not fit together, or differ in this split.
    """
    task, runs = task_of(run), runs_of(run)
    columns = _columns_of(runs[0], task, split)
    for other in runs[1:]:
        if not _equal(columns, _columns_of(other, task, split)):
            raise ValueError(
                f"{runs[0].path} and {other.path} differ in their split {split}: name the files to "
                "evaluate them on together."
            )
    results = _evaluate(task, runs, pipeline, columns, options)
    if split == "test" and len(runs) == 1:
        figures = {("test_seconds" if k == "seconds" else k): v for k, v in results.items()}
        runs[0].update_metrics(**figures)
    return results


def task_of(run):
    """Returns the `Task` of a run, which its settings name; of several, that of all.

    Args:
        run: Folder of the run, or a list of several.

    Raises:
        ValueError: If there are no settings, or several runs have different tasks.
    """
    runs = runs_of(run)
    for folder in runs:
        if not folder.config.is_file():
            folder.require_finished(vocabulary=False)
    check_tasks(runs)
    return load_settings(runs[0].config).task.get()


def _evaluate(task, runs, pipeline, columns, options):
    """Returns the metrics of an evaluation, with the folders if there are several runs."""
    folders = [run.path for run in runs]
    if pipeline is None:
        pipeline = open_run(folders[0] if len(folders) == 1 else folders)
    results = task.evaluate(pipeline, columns, **options)
    return results if len(runs) == 1 else {**results, "runs": [str(path) for path in folders]}


def _columns_of(run, task, split):
    """Returns the columns that a run is evaluated on: see `read_columns`."""
    run.require_finished(bool(task.texts))
    data = open_source(load_settings(run.config).data, task.columns)
    data.check_split(split)
    return read_columns(data, task, split)


def _equal(ours, theirs):
    """Returns whether two lists of columns, of strings or of arrays, are the same.

    What is not known, `nan`, is equal to itself.
    """
    return len(ours) == len(theirs) and all(
        len(one) == len(other) and all(map(_same, one, other))
        for one, other in zip(ours, theirs, strict=True)
    )


def _same(one, other):
    """Returns whether two strings or arrays are equal; unknown values, `nan`, equal each other."""
    of_numbers = np.issubdtype(np.asarray(one).dtype, np.floating)
    return np.array_equal(one, other, equal_nan=of_numbers)


def _named(runs):
    return " and ".join(str(run.path) for run in runs)


def read_columns(data, task, split, limit=None):
    """Returns what is evaluated: the inputs of a split, and what belongs to them if there is more.

    Args:
        data: A `Source`.
        task: The `Task`: see its `examples`.
        split: Name of the split.
        limit: Most rows. `None`: all.
    """
    rows = data.rows(split)
    rows = rows if limit is None else rows.take(limit)
    columns = {name: [] for name in task.columns}
    for row in rows.as_numpy_iterator():
        for name, value in zip(task.columns, row, strict=True):
            columns[name].append(value.decode() if isinstance(value, bytes) else value)
    return task.examples(columns)
