"""Tasks: the purposes of models, each with its data, metrics and pipeline."""

import os
from typing import Any

from keras_transformer.plugins import REMEDY
from keras_transformer.registry import Registry

# A new task of this package is added here; `register` adds a task of another package.
TASKS = Registry(
    __name__,
    {
        "translation": "translation.task:TranslationTask",
        "summarization": "summarization.task:SummarizationTask",
        "classification": "classification.task:ClassificationTask",
        "multi_label_classification": (
            "multi_label_classification.task:MultiLabelClassificationTask"
        ),
        "scoring": "scoring.task:ScoringTask",
        "embedding": "embedding.task:EmbeddingTask",
        "sparse_embedding": "sparse_embedding.task:SparseEmbeddingTask",
        "late_interaction": "late_interaction.task:LateInteractionTask",
        "token_classification": "token_classification.task:TokenClassificationTask",
        "question_answering": "question_answering.task:QuestionAnsweringTask",
        "language_modelling": "language_modelling.task:LanguageModellingTask",
        "masked_language_modelling": "masked_language_modelling.task:MaskedLanguageModellingTask",
        "image_classification": "image_classification.task:ImageClassificationTask",
        "image_embedding": "image_embedding.task:ImageEmbeddingTask",
        "story_questions": "story_questions.task:StoryQuestionsTask",
        "time_series": "time_series.task:TimeSeriesTask",
        "speech_recognition": "speech_recognition.task:SpeechRecognitionTask",
        "arithmetic": "arithmetic.task:ArithmeticTask",
    },
)


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
    from keras_transformer.tasks.run import Run

    if not isinstance(path, str | os.PathLike):
        from keras_transformer.tasks.ensemble import open_ensemble

        return open_ensemble(path, max_length)
    run = Run(path)
    model, kind = load(run)
    return kind.with_files_of(run, model, max_length)


def load(run) -> tuple[Any, type[Any]]:
    """Returns the model of a `Run` and the class of its pipeline.

    Raises:
        ValueError: If the task of the run is unknown, or a file is missing or damaged.
    """
    task = run.task()
    if task not in (None, *TASKS):
        raise ValueError(f"{run.path} has the task {task!r}, which is unknown: {REMEDY}.")
    model = run.load_model()
    return model, pipeline_class_of(type(model), task)


def pipeline_class_of(model_class, task=None) -> type[Any]:
    """Returns the class of the pipeline of a model.

    Args:
        model_class: Class of the model.
        task: Name of the task, if several tasks have models of this class. `None`: the first of
            these tasks.
    """
    for name in sorted(TASKS, key=lambda name: name != task):  # stable: `task` first
        kind = TASKS[name].pipeline_class()
        if kind.model_class is model_class:
            return kind
    raise ValueError(f"`model_class` must be that of a task. Received: {model_class.__name__}.")
