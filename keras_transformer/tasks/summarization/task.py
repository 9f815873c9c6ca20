"""The task of summarisation."""

from typing import Any

from keras_transformer.tasks.source_to_target import SourceToTargetTask
from keras_transformer.tasks.task import Metric


class SummarizationTask(SourceToTargetTask):
    """Summarisation of texts by a `Transformer`; see `Task`."""

    name = "summarization"
    metrics = {
        **SourceToTargetTask.metrics,
        "rouge1": Metric("ROUGE-1", higher_is_better=True, of_answers=True, drawn=False),
        "rouge2": Metric("ROUGE-2", higher_is_better=True, of_answers=True, drawn=False),
        "rougeL": Metric("ROUGE-L", higher_is_better=True, of_answers=True),
    }

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.summarization.pipeline import Summarizer

        return Summarizer

    def answering_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.summarization.answers import SummarizationAnswers

        return SummarizationAnswers

    def require(self, settings) -> None:  # noqa: D102
        if settings.training.validate_sentences:
            from keras_transformer.tasks.summarization.metrics import load_scorer

            load_scorer()

    def measure(self, pipeline, inputs, references) -> dict[str, Any]:  # noqa: D102
        from keras_transformer.tasks.summarization.metrics import KINDS, rouge

        scores = rouge(pipeline(inputs), references)
        return {name: scores[name] for name in KINDS}

    def evaluate(self, pipeline, columns, search=None, report_incomplete=None) -> dict[str, Any]:
        """Summarises texts and compares the summaries with reference summaries.

        Args:
            pipeline: Function from a list of strings to a list of strings, such as a `Summarizer`.
            columns: List of texts, and list of reference summaries.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the default search of a `Summarizer`.
            report_incomplete: See `answer`.

        Returns:
            The dictionary of `rouge` with the entry `seconds`, the time of the summarisation; if
            the search is known, `search`, its name; and for a `Summarizer`, `truncated`, the number
            of texts that were longer than its limit and were truncated, and `incomplete`, the
            number of summaries that reached their maximum length.

        Raises:
            ValueError: If there is no text, or the package rouge-score is missing.
        """
        from keras_transformer.tasks.summarization.metrics import load_scorer, rouge

        load_scorer()  # fails early if the package is missing
        sources, references = columns
        summaries, details = self.answer(pipeline, sources, search, report_incomplete)
        if isinstance(pipeline, self.pipeline_class()):
            details["truncated"] = pipeline.count_truncated(sources)
        return {**rouge(summaries, references), **details}
