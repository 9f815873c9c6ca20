"""The task of summarisation: a text to what matters in it."""

from keras_transformer.tasks.source_to_target import SourceToTargetTask
from keras_transformer.tasks.task import Metric


class SummarizationTask(SourceToTargetTask):
    """Texts and their summaries, by a `Transformer`."""

    name = "summarization"
    metrics = {
        **SourceToTargetTask.metrics,
        "rouge1": Metric("ROUGE-1", higher_is_better=True, of_texts=True, drawn=False),
        "rouge2": Metric("ROUGE-2", higher_is_better=True, of_texts=True, drawn=False),
        "rougeL": Metric("ROUGE-L", higher_is_better=True, of_texts=True),
    }

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.summarization.summarizer import Summarizer

        return Summarizer

    def require(self, settings):  # noqa: D102
        if settings.training.validate_sentences:
            from keras_transformer.text.rouge import load_scorer

            load_scorer()

    def measure(self, pipeline, inputs, references):  # noqa: D102
        from keras_transformer.text.rouge import KINDS, rouge

        scores = rouge(pipeline(inputs), references)
        return {name: scores[name] for name in KINDS}

    def evaluate(self, pipeline, columns, search=None):
        """Summarises texts and compares the summaries with the right ones.

        Args:
            pipeline: Function from a list of strings to a list of strings, such as a `Summarizer`.
            columns: List of strings, and list of the right summaries.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the default of a `Summarizer`, greedy.

        Returns:
            The dictionary of `rouge`; `seconds`, the time the summaries took; with a search, or a
            `Summarizer`, `search`, its name; and of a `Summarizer` `truncated`, how many of the
            texts are longer than it reads, and were cut.

        Raises:
            ValueError: If there is no text, or the package rouge-score is missing.
        """
        from keras_transformer.text.rouge import load_scorer, rouge

        load_scorer()  # before the work
        sources, references = columns
        summaries, facts = self.answer(pipeline, sources, search)
        if isinstance(pipeline, self.pipeline_class()):
            facts["truncated"] = pipeline.count_truncated(sources)
        return {**rouge(summaries, references), **facts}
