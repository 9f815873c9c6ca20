"""Tasks: the purposes of models, each with its data, metrics and pipeline."""

from typing import Any

from keras_transformer.plugins import REMEDY
from keras_transformer.tasks.classification.task import ClassificationTask
from keras_transformer.tasks.embedding.task import EmbeddingTask
from keras_transformer.tasks.images.task import ImageClassificationTask
from keras_transformer.tasks.labelling.task import LabellingTask
from keras_transformer.tasks.language_modelling import LanguageModellingTask
from keras_transformer.tasks.masked_language_modelling.task import MaskedLanguageModellingTask
from keras_transformer.tasks.question_answering.task import QuestionAnsweringTask
from keras_transformer.tasks.series.task import TimeSeriesTask
from keras_transformer.tasks.speech_recognition.task import SpeechRecognitionTask
from keras_transformer.tasks.summarization.task import SummarizationTask
from keras_transformer.tasks.translation import TranslationTask

# A new task of this package is added here; `register` adds a task of another package.
TASKS = {
    task.name: task
    for task in (
        TranslationTask(),
        SummarizationTask(),
        ClassificationTask(),
        EmbeddingTask(),
        LabellingTask(),
        QuestionAnsweringTask(),
        LanguageModellingTask(),
        MaskedLanguageModellingTask(),
        ImageClassificationTask(),
        TimeSeriesTask(),
        SpeechRecognitionTask(),
    )
}


def register(task) -> None:
    """Makes a task available to configurations.

    Args:
        task: The `Task`. Register it before a configuration that names it is read.

    Raises:
        ValueError: If another task has the same name.
    """
    if TASKS.setdefault(task.name, task) is not task:
        raise ValueError(f"`task` must have a unique name. Received: {task.name!r}.")


def open_run(path, max_length=None) -> Any:
    """Returns the pipeline of a run, such as a `Translator`.

    Args:
        path: Folder of the run, or a list of folders, whose models form an ensemble; see
            `Pipeline.from_run`.
        max_length: See `TextPipeline`.

    Raises:
        ValueError: If a file is missing or damaged, the files do not belong to one run, or several
            runs cannot form an ensemble.
    """
    from keras_transformer.tasks.ensemble import check_tasks, open_together, runs_of

    runs = runs_of(path)
    names = [str(run.path) for run in runs]
    for run in runs:
        if run.task() not in (None, *TASKS):
            raise ValueError(f"{run.path} has the task {run.task()!r}, which is unknown: {REMEDY}.")
    models = [run.load_model() for run in runs]
    check_tasks(runs)
    kinds = [
        pipeline_class_of(type(model), run.task()) for run, model in zip(runs, models, strict=True)
    ]
    for name, kind in zip(names[1:], kinds[1:], strict=True):
        if kind is not kinds[0]:
            raise ValueError(
                f"{names[0]} and {name} cannot form an ensemble: their models are for "
                f"{kinds[0].task} and {kind.task}."
            )
    return open_together(kinds[0], runs, models, max_length)


def pipeline_class_of(model_class, task=None) -> type[Any]:
    """Returns the class of the pipeline of a model.

    Args:
        model_class: Class of the model.
        task: Name of the task, if several tasks have models of this class. `None`: the first of
            these tasks.
    """
    classes = {name: known.pipeline_class() for name, known in TASKS.items()}
    fitting = {name: kind for name, kind in classes.items() if kind.model_class is model_class}
    return fitting.get(task) or next(iter(fitting.values()))
