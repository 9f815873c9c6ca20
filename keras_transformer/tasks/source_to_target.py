"""The base of tasks in which a text is generated for another one: translation, summarisation."""

import functools
import time

from keras_transformer.config import TransformerConfig
from keras_transformer.tasks.task import LOSS, PERPLEXITY, TOKEN_ACCURACY, Task


class SourceToTargetTask(Task):
    """Pairs of texts, by a `Transformer`; see `Task`."""

    columns = ("source", "target")
    texts = {"source": ("source",), "target": ("target",)}
    training = "keras_transformer.training.tasks.translation:TranslationTraining"
    config_class = TransformerConfig
    metrics = {"loss": LOSS, "perplexity": PERPLEXITY, "token_accuracy": TOKEN_ACCURACY}
    evaluation_options = ("search",)
    has_two_sides = True

    def answer(self, pipeline, sources, search=None):
        """Generates a text for each source, and takes the time.

        Args:
            pipeline: Function from a list of strings to a list of strings.
            sources: List of strings.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the default of the pipeline.

        Returns:
            List of strings; and a dictionary of `seconds`, and with a search, or one of the task's
            own pipelines, of `search`, its name, with that of the shortlist if there is one.
        """
        if search is None and isinstance(pipeline, self.pipeline_class()):
            search = pipeline.search
        generate = pipeline if search is None else functools.partial(pipeline, search=search)
        begin = time.perf_counter()
        texts = generate(sources)
        facts = {"seconds": round(time.perf_counter() - begin, 3)}
        if search is None:
            return texts, facts
        shortlist = getattr(pipeline, "shortlist", None)
        name = str(search) if shortlist is None else f"{search}, {shortlist}"
        return texts, {**facts, "search": name}
