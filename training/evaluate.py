"""Measuring a run on test data (section 6.1)."""

from keras_transformer.run import Run
from keras_transformer.tasks import open_run
from keras_transformer.text.lines import read_lines, read_parallel
from keras_transformer.training.data.sources import open_source
from keras_transformer.training.settings.toml import load_settings


def evaluate_files(run, source, reference=None, pipeline=None, **options):
    """Evaluates a run on text files.

    Args:
        run: Folder of the run.
        source: File of inputs, one per line.
        reference: File of what belongs to them, line by line, such as translations or labels.
            `None` for a task with one column.
        pipeline: What the run's model is used by, such as a `Translator` with a shortlist. `None`:
            as `open_run` returns it.
        **options: Those of the task's `evaluate`.

    Returns:
        The dictionary of the task's `evaluate`.

    Raises:
        ValueError: If a file is not UTF-8, they differ in their number of lines, or the task needs
            other files.
    """
    task = task_of(run)
    if (len(task.columns) == 2) != (reference is not None):
        raise ValueError(
            f"{run} is a run for {task.name}, whose data have {' and '.join(task.columns)}: "
            f"evaluating files takes {'two of them' if reference is None else 'one of them'}."
        )
    if reference is None:
        columns = [read_lines(source, task.decoding_errors)]
    else:
        columns = read_parallel(source, reference, task.decoding_errors)
    return task.evaluate(open_run(run) if pipeline is None else pipeline, columns, **options)


def evaluate_split(run, split="test", pipeline=None, **options):
    """Evaluates a run on a split of its own data; the test split's figures stay in the run.

    Args:
        run: Folder of the run.
        split: `"train"`, `"validation"` or `"test"`.
        pipeline: See `evaluate_files`.
        **options: Those of the task's `evaluate`.

    Returns:
        The dictionary of the task's `evaluate`. For the test split `metrics.json` of the run also
        has it.
    """
    folder, task = Run(run), task_of(run)
    folder.require_finished(task.reads_text)
    data = open_source(load_settings(folder.config).data, task.columns)
    data.check_split(split)
    pipeline = open_run(run) if pipeline is None else pipeline
    results = task.evaluate(pipeline, read_columns(data, task, split), **options)
    if split == "test":
        figures = {("test_seconds" if k == "seconds" else k): v for k, v in results.items()}
        folder.update_metrics(**figures)
    return results


def task_of(run):
    """Returns the `Task` of a run, which its settings name.

    Raises:
        ValueError: If there are none.
    """
    folder = Run(run)
    if not folder.config.is_file():
        folder.require_finished(vocabulary=False)
    return load_settings(folder.config).task.get()


def read_columns(data, task, split, limit=None):
    """Returns what is evaluated: the columns of a split, each a list of strings or of arrays.

    Args:
        data: A `Source`.
        task: The `Task`; its `references` become the last column, if there are several.
        split: Name of the split.
        limit: Most rows. `None`: all.
    """
    rows = data.rows(split)
    rows = rows if limit is None else rows.take(limit)
    columns = [[] for _ in rows.element_spec]
    for row in rows.as_numpy_iterator():
        for column, value in zip(columns, row, strict=True):
            column.append(value.decode() if isinstance(value, bytes) else value)
    return [*columns[:-1], task.references(columns[-1])] if len(columns) > 1 else columns
