"""The task of translation: a text to the same in another language."""

from keras_transformer.tasks.source_to_target import SourceToTargetTask
from keras_transformer.tasks.task import Metric


class TranslationTask(SourceToTargetTask):
    """Sentences and their translations, by a `Transformer`."""

    name = "translation"
    metrics = {
        **SourceToTargetTask.metrics,
        "bleu": Metric("BLEU", higher_is_better=True, of_texts=True),
        "exact_match": Metric("exact match", higher_is_better=True, of_texts=True, drawn=False),
    }
    evaluation_options = ("search", "lowercase", "tokenize")

    def pipeline_class(self):  # noqa: D102
        from keras_transformer.tasks.translator import Translator

        return Translator

    def measure(self, pipeline, inputs, references):  # noqa: D102
        from keras_transformer.text.quality import score

        scores = score(pipeline(inputs), references)
        return {name: scores[name] for name in ("bleu", "exact_match")}

    def evaluate(self, pipeline, columns, search=None, lowercase=False, tokenize="13a"):
        """Translates sentences and scores the translations (section 6.1).

        Args:
            pipeline: Function from a list of strings to a list of strings, such as a `Translator`.
            columns: List of strings, and list of the right translations.
            search: A `Greedy`, `Beam` or `Sample`. `None`: a `Translator`'s own.
            lowercase: See `score`.
            tokenize: See `score`.

        Returns:
            The dictionary of `score`; `seconds`, the time the translation took; and with a search,
            or a `Translator`, `search`, its name.
        """
        from keras_transformer.text.quality import score

        sources, references = columns
        hypotheses, facts = self.answer(pipeline, sources, search)
        return {**score(hypotheses, references, lowercase=lowercase, tokenize=tokenize), **facts}
