"""The task of translation: a text to the same in another language."""

import functools
import time

from keras_transformer.config import TransformerConfig
from keras_transformer.tasks.task import LOSS, PERPLEXITY, TOKEN_ACCURACY, Figure, Task


class TranslationTask(Task):
    """Sentences and their translations, by a `Transformer`."""

    name = "translation"
    columns = ("source", "target")
    target_columns = (1,)
    config_class = TransformerConfig
    figures = {
        "loss": LOSS,
        "perplexity": PERPLEXITY,
        "token_accuracy": TOKEN_ACCURACY,
        "bleu": Figure("BLEU", higher_is_better=True, of_texts=True),
        "exact_match": Figure("exact match", higher_is_better=True, of_texts=True, drawn=False),
    }
    evaluation_options = ("search", "lowercase", "tokenize")
    has_two_sides = True

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
            search: A `Greedy`, `Beam` or `Sample`. `None`: the default of a `Translator`, greedy.
            lowercase: See `score`.
            tokenize: See `score`.

        Returns:
            The dictionary of `score`; `seconds`, the time the translation took; and with a search,
            or a `Translator`, `search`, its name.
        """
        from keras_transformer.decoding import Greedy
        from keras_transformer.text.quality import score

        if search is None and isinstance(pipeline, self.pipeline_class()):
            search = Greedy()

        sources, references = columns
        translate = pipeline if search is None else functools.partial(pipeline, search=search)
        begin = time.perf_counter()
        hypotheses = translate(sources)
        seconds = time.perf_counter() - begin
        scores = score(hypotheses, references, lowercase=lowercase, tokenize=tokenize)
        name = {} if search is None else {"search": str(search)}
        return {**scores, "seconds": round(seconds, 3), **name}
