"""The task of late interaction between the tokens of queries and passages."""

import time
from typing import Any

from keras_transformer.tasks.late_interaction.config import MultiVectorEncoderConfig
from keras_transformer.tasks.partners import ranks_of_partners, recall_at
from keras_transformer.tasks.task import LOSS, Metric, Task
from keras_transformer.text.lines import parse_lines, read_lines
from keras_transformer.text.pairs import parse


class LateInteractionTask(Task):
    """Vectors of tokens by a `MultiVectorEncoder`, trained on queries with a right passage each."""

    name = "late_interaction"
    columns = ("query", "passage")
    file_columns = ("queries with passages",)
    texts = {"source": ("query", "passage")}
    training = "keras_transformer.training.tasks.late_interaction:LateInteractionTraining"
    config_class = MultiVectorEncoderConfig
    metrics = {
        "loss": LOSS,
        "recall_at_1": Metric("recall at 1", higher_is_better=True, of_answers=True),
    }
    unit = "examples"
    unused = ("training.r_drop", "training.label_smoothing")

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.late_interaction.pipeline import LateInteractionRanker

        return LateInteractionRanker

    def check(self, settings) -> None:
        """Refuses gradient accumulation, whose batches do not see each other's passages."""
        if settings.training.accumulate > 1:
            raise ValueError(
                "`training.accumulate` must be 1 for late_interaction: every query is compared "
                "with the passages of its own batch, so that several small batches are not one "
                f"large batch. Received: training.accumulate={settings.training.accumulate}."
            )

    def read_files(self, source, reference=None) -> list[list]:
        """Reads a file with a query, a tab and a passage on each line, as `examples` does.

        Raises:
            ValueError: If a line is not UTF-8 or has no tab, or there is a `reference`.
        """
        if reference is not None:
            raise ValueError(
                "`--reference` has no effect on a model for late_interaction, whose file has a "
                f"query, a tab and its passage on each line. Received: {reference}."
            )
        pairs = parse_lines(parse, read_lines(source), "example")
        return [list(column) for column in zip(*pairs, strict=True)] or [[], []]

    def samples(self, inputs) -> list:
        """Returns pairs of each text and the next one, as an export answers pairs."""
        return list(zip(inputs, [*inputs[1:], *inputs[:1]], strict=True))

    def measure(self, pipeline, inputs, references) -> dict[str, Any]:
        """Returns `recall_at_1`, from 0 to 100; see `ranks_of_partners`."""
        return {"recall_at_1": recall_at(_ranks(pipeline, inputs, references), 1)}

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Ranks the passages of all pairs for each query.

        Args:
            pipeline: A `LateInteractionRanker`.
            columns: Lists of the queries and of their passages.

        Returns:
            A dictionary: `recall_at_1`, `recall_at_5` and `recall_at_10`, from 0 to 100, the share
            of queries whose passage is among the best candidates; `mrr_at_10`, from 0 to 100, the
            mean of 1 divided by its rank, 0 beyond rank 10; `candidates`, the number of different
            passages; `pairs`; and `seconds`. See `ranks_of_partners`.

        Raises:
            ValueError: If there are no pairs.
        """
        queries, passages = columns
        if not queries:
            raise ValueError("There are no pairs of texts to evaluate.")
        begin = time.monotonic()
        ranks = _ranks(pipeline, queries, passages)
        metrics: dict[str, Any] = {f"recall_at_{n}": recall_at(ranks, n) for n in (1, 5, 10)}
        metrics["mrr_at_10"] = 100 * float(((ranks <= 10) / ranks).mean())
        metrics["candidates"] = len({*passages})
        seconds = round(time.monotonic() - begin, 3)
        return {**metrics, "pairs": len(queries), "seconds": seconds}


def _ranks(pipeline, queries, passages):
    """Returns the rank of the passage of each query among all passages."""
    from keras_transformer.tasks.late_interaction.max_sim import similarities

    different = [*dict.fromkeys(passages)]
    vectors = dict(zip(different, pipeline.embed_passages(different), strict=True))

    def compare(chunk, candidates):
        ours = pipeline.embed_queries(queries[chunk])
        return similarities(ours, [vectors[passages[number]] for number in candidates])

    return ranks_of_partners(compare, queries, passages)
