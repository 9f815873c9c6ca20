"""The task of sparse vectors of texts."""

from typing import Any

import numpy as np

from keras_transformer.postings import Postings
from keras_transformer.tasks.sparse_embedding.config import SparseEmbedderConfig
from keras_transformer.tasks.task import LOSS, Metric
from keras_transformer.tasks.text_pairs import TextPairsTask

ACTIVE = ("query_active", "text_active")


class SparseEmbeddingTask(TextPairsTask):
    """Sparse vectors of texts by a `SparseTextEmbedder`, trained on pairs that belong together."""

    name = "sparse_embedding"
    training = "keras_transformer.training.tasks.sparse_embedding.training:SparseEmbeddingTraining"
    config_class = SparseEmbedderConfig
    metrics = {
        "loss": LOSS,
        "recall_at_1": Metric("recall at 1", higher_is_better=True, of_answers=True),
        **{
            name: Metric(f"tokens of {side} texts", higher_is_better=False, of_answers=True)
            for name, side in zip(ACTIVE, ("first", "second"), strict=True)
        },
    }

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.sparse_embedding.pipeline import SparseEmbedder

        return SparseEmbedder

    def similarities(self, pipeline, results, others) -> Any:
        """Returns a function of the dot products of vectors; see `TextPairsTask.similarities`."""
        postings = Postings.of_vectors(others, pipeline.source_tokenizer.vocab_size)
        return lambda texts, partners: np.array(
            [postings.scores(vector.ids, vector.weights)[partners] for vector in results[texts]]
        )

    def of_pairs(self, pipeline, results, others) -> Any:
        """Returns the dot product of each pair, a list."""
        return [ours.similarity(theirs) for ours, theirs in zip(results, others, strict=True)]

    def sizes(self, results, others) -> dict[str, float]:
        """Returns `query_active` and `text_active`, the mean numbers of tokens with a weight."""
        means = (sum(len(vector.ids) for vector in side) / len(side) for side in (results, others))
        return dict(zip(ACTIVE, means, strict=True))
