"""The training of each task."""

from keras_transformer.training.tasks.classification import ClassificationTraining
from keras_transformer.training.tasks.image_classification import ImageClassificationTraining
from keras_transformer.training.tasks.labelling import LabellingTraining
from keras_transformer.training.tasks.language_modelling import LanguageModellingTraining
from keras_transformer.training.tasks.question_answering import QuestionAnsweringTraining
from keras_transformer.training.tasks.time_series import TimeSeriesTraining
from keras_transformer.training.tasks.translation import TranslationTraining

# By the names of `keras_transformer.tasks.TASKS`; the table to add another task to.
TRAININGS = {
    "translation": TranslationTraining,
    "summarization": TranslationTraining,  # pairs of texts as well
    "classification": ClassificationTraining,
    "labelling": LabellingTraining,
    "question_answering": QuestionAnsweringTraining,
    "language_modelling": LanguageModellingTraining,
    "image_classification": ImageClassificationTraining,
    "time_series": TimeSeriesTraining,
}
