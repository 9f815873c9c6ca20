"""The base of tasks that generate a text from a source text: translation and summarisation."""

import functools
import time
from typing import Any

from keras_transformer.config import TransformerConfig
from keras_transformer.tasks.task import LOSS, PERPLEXITY, TOKEN_ACCURACY, Task


class SourceToTargetTask(Task):
    """Base of tasks on pairs of texts with a `Transformer`; see `Task`."""

    columns = ("source", "target")
    texts = {"source": ("source",), "target": ("target",)}
    training = "keras_transformer.training.tasks.translation:TranslationTraining"
    config_class = TransformerConfig
    metrics = {"loss": LOSS, "perplexity": PERPLEXITY, "token_accuracy": TOKEN_ACCURACY}
    evaluation_options = ("search",)
    has_two_sides = cuts_tokens = True
    tuning_rate = 3e-5  # of BART on summaries (Lewis et al., 2020, and the recipe in fairseq)

    def answer(self, pipeline, sources, search=None) -> tuple[list[str], dict[str, Any]]:
        """Generates a text for each source, and measures the time.

        Args:
            pipeline: Function from a list of strings to a list of strings.
            sources: List of strings.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the default search of the pipeline.

        Returns:
            List of strings, and a dictionary with `seconds` and, if `search` is given or the
            pipeline is one of the task's own, `search`: the names of search and shortlist.
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
