"""Tasks: what a model is for, and what it is used by, inputs in and answers out."""

from keras_transformer.tasks.classification import ClassificationTask
from keras_transformer.tasks.images.task import ImageClassificationTask
from keras_transformer.tasks.labelling.task import LabellingTask
from keras_transformer.tasks.language_modelling import LanguageModellingTask
from keras_transformer.tasks.question_answering.task import QuestionAnsweringTask
from keras_transformer.tasks.series.task import TimeSeriesTask
from keras_transformer.tasks.summarization.task import SummarizationTask
from keras_transformer.tasks.translation import TranslationTask

# The table to add another task to; `training/tasks/` has one of how each is trained.
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


def open_run(path, max_length=None):
    """Returns what the model in the folder of a run is used by, such as a `Translator`.

    Raises:
        ValueError: If a file is missing or damaged, or they are not of one run.
    """
    from keras_transformer.run import Run

    run = Run(path)
    model = run.load_model()
    kind = pipeline_class_of(type(model), run.task())
    return kind.with_files_of(run, model, max_length)


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
