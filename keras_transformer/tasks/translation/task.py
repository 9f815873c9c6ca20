"""The task of translation."""

from typing import Any

from keras_transformer.tasks.source_to_target import SourceToTargetTask
from keras_transformer.tasks.task import Metric


class TranslationTask(SourceToTargetTask):
    """Translation of sentences by a `Transformer`; see `Task`."""

    name = "translation"
    metrics = {
        **SourceToTargetTask.metrics,
        "bleu": Metric("BLEU", higher_is_better=True, of_answers=True),
        "exact_match": Metric("exact match", higher_is_better=True, of_answers=True, drawn=False),
    }
    evaluation_options = (*SourceToTargetTask.evaluation_options, "lowercase", "tokenize")

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.translation.pipeline import Translator

        return Translator

    def answering_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.translation.answers import TranslationAnswers

        return TranslationAnswers

    def measure(self, pipeline, inputs, references) -> dict[str, Any]:  # noqa: D102
        from keras_transformer.text.quality import score

        scores = score(pipeline(inputs), references)
        return {name: scores[name] for name in ("bleu", "exact_match")}

    def doubt(self, references) -> str:  # noqa: D102
        from keras_transformer.text.quality import single_words

        return single_words(references)

    def evaluate(
        self,
        pipeline,
        columns,
        search=None,
        lowercase=False,
        tokenize=None,
        report_incomplete=None,
    ) -> dict[str, Any]:
        """Translates sentences and scores the translations (section 6.1).

        Args:
            pipeline: Function from a list of strings to a list of strings, such as a `Translator`.
            columns: List of sources, and list of reference translations.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the default search of a `Translator`.
            lowercase: See `score`.
            tokenize: See `score`.
            report_incomplete: See `answer`.

        Returns:
            The dictionary of `score` with the entry `seconds`, the time of the translation; if the
            search is known, `search`, its name; and for a `Translator`, `incomplete`, the number of
            translations that reached their maximum length.
        """
        from keras_transformer.text.quality import score

        sources, references = columns
        hypotheses, details = self.answer(pipeline, sources, search, report_incomplete)
        return {**score(hypotheses, references, lowercase=lowercase, tokenize=tokenize), **details}
