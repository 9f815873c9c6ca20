"""`TranslationAnswers`, which runs and exports have in common."""

from keras_transformer.tasks.answering import SourceAnswering
from keras_transformer.tasks.results import Translation


class TranslationAnswers(SourceAnswering):
    """Something that answers with translations: a run or an export."""

    task = "translation"
    result = Translation
    output = "translation"
