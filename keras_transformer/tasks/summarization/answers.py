"""`SummarizationAnswers`, which runs and exports have in common."""

from keras_transformer.tasks.answering import SourceAnswering
from keras_transformer.tasks.results import Summary


class SummarizationAnswers(SourceAnswering):
    """Something that answers with summaries: a run or an export."""

    task = "summarization"
    result = Summary
    output = "summary"
