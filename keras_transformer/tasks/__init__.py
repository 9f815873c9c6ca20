"""Tasks: what a model is for, and what it is used by, inputs in and answers out."""

from keras_transformer.tasks.classification.task import ClassificationTask
from keras_transformer.tasks.images.task import ImageClassificationTask
from keras_transformer.tasks.labelling.task import LabellingTask
from keras_transformer.tasks.language_modelling import LanguageModellingTask
from keras_transformer.tasks.question_answering.task import QuestionAnsweringTask
from keras_transformer.tasks.series.task import TimeSeriesTask
from keras_transformer.tasks.summarization.task import SummarizationTask
from keras_transformer.tasks.translation import TranslationTask

# The table to add another task to; `register` adds one of another package.
TASKS = {
    task.name: task
    for task in (
        TranslationTask(),
        SummarizationTask(),
        ClassificationTask(),
        LabellingTask(),
        QuestionAnsweringTask(),
        LanguageModellingTask(),
        ImageClassificationTask(),
        TimeSeriesTask(),
    )
}


def register(task):
    """Adds a task to those that a configuration can name.

    Args:
        task: The `Task`. Register it before a configuration of it is read.

    Raises:
        ValueError: If another task has its name.
    """
    if TASKS.setdefault(task.name, task) is not task:
        raise ValueError(f"`task` must have a name of its own. Received: {task.name!r}.")


def open_run(path, max_length=None):
    """Returns what the model in the folder of a run is used by, such as a `Translator`.

    Args:
        path: The folder, or a list of several, whose models answer together: see
            `Pipeline.from_run`.
        max_length: See `TextPipeline`.

    Raises:
        ValueError: If a file is missing or damaged, they are not of one run, or several runs do not
            fit together.
    """
    from keras_transformer.tasks.ensemble import check_tasks, open_together, runs_of

    runs = runs_of(path)
    names = [str(run.path) for run in runs]
    models = [run.load_model() for run in runs]
    check_tasks(runs)
    kinds = [
        pipeline_class_of(type(model), run.task()) for run, model in zip(runs, models, strict=True)
    ]
    for name, kind in zip(names[1:], kinds[1:], strict=True):
        if kind is not kinds[0]:
            raise ValueError(
                f"{names[0]} and {name} cannot answer together: their models are for "
                f"{kinds[0].task} and {kind.task}."
            )
    return open_together(kinds[0], runs, models, max_length)


def pipeline_class_of(model_class, task=None):
    """Returns the class of what models of a class are used by.

    Args:
        model_class: The class.
        task: The name of the task, where several have models of that class. `None`: not known,
            which is the first of these tasks.
    """
    classes = {name: known.pipeline_class() for name, known in TASKS.items()}
    fitting = {name: kind for name, kind in classes.items() if kind.model_class is model_class}
    return fitting.get(task) or next(iter(fitting.values()))
