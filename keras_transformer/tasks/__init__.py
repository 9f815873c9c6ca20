"""Tasks: what a model is for, and what it is used by, text in and answers out."""

from keras_transformer.tasks.classification import ClassificationTask
from keras_transformer.tasks.labelling.task import LabellingTask
from keras_transformer.tasks.language_modelling import LanguageModellingTask
from keras_transformer.tasks.question_answering.task import QuestionAnsweringTask
from keras_transformer.tasks.translation import TranslationTask

# The table to add another task to; `training/tasks/` has one of how each is trained.
TASKS = {
    task.name: task
    for task in (
        TranslationTask(),
        ClassificationTask(),
        LanguageModellingTask(),
        LabellingTask(),
        QuestionAnsweringTask(),
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
    return pipeline_class_of(type(model)).with_files_of(run, model, max_length)


def pipeline_class_of(model_class):
    """Returns the class of what models of a class are used by."""
    classes = (task.pipeline_class() for task in TASKS.values())
    return next(
        pipeline_class for pipeline_class in classes if pipeline_class.model_class is model_class
    )
