"""The base of tasks that generate a text from a source text: translation and summarisation."""

import time
from typing import Any

from keras_transformer.config import TransformerConfig
from keras_transformer.tasks.incomplete import count_incomplete
from keras_transformer.tasks.task import LOSS, PERPLEXITY, TOKEN_ACCURACY, Task


class SourceToTargetTask(Task):
    """Base of tasks on pairs of texts with a `Transformer`; see `Task`."""

    columns = ("source", "target")
    texts = {"source": ("source",), "target": ("target",)}
    training = "keras_transformer.training.tasks.source_to_target:SourceToTargetTraining"
    config_class = TransformerConfig
    metrics = {"loss": LOSS, "perplexity": PERPLEXITY, "token_accuracy": TOKEN_ACCURACY}
    evaluation_options = ("search", "report_incomplete")
    has_two_sides = truncates_tokens = True
    tuning_rate = 3e-5  # of BART on summaries (Lewis et al., 2020, and the recipe in fairseq)

    def answer(
        self, pipeline, sources, search=None, report_incomplete=None
    ) -> tuple[list[str], dict[str, Any]]:
        """Generates a text for each source, and measures the time.

        Args:
            pipeline: Function from a list of strings to a list of strings.
            sources: List of strings.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the default search of the pipeline.
            report_incomplete: Function that is called with the number of each source, from 1, whose
                output reached its maximum length. `None`: none.

        Returns:
            List of strings, and a dictionary with `seconds`; if `search` is given or the pipeline
            is one of the task's own, `search`, the names of search and shortlist; and if it is the
            task's own, `incomplete`, the number of outputs that reached their maximum length;
            a subclass that changes the texts is called instead, without that number.
        """
        is_own = isinstance(pipeline, self.pipeline_class())
        if search is None and is_own:
            search = pipeline.search
        begin, incomplete = time.perf_counter(), {}
        if is_own and type(pipeline).__call__ is self.pipeline_class().__call__:
            results = [best for best, *_ in pipeline.n_best(sources, 1, search)]
            texts = [result.text for result in results]
            incomplete["incomplete"] = count_incomplete(results, report_incomplete)
        else:
            texts = pipeline(sources) if search is None else pipeline(sources, search=search)
        details = {"seconds": round(time.perf_counter() - begin, 3), **incomplete}
        if search is None:
            return texts, details
        shortlist = getattr(pipeline, "shortlist", None)
        name = str(search) if shortlist is None else f"{search}, {shortlist}"
        return texts, {**details, "search": name}
