"""The task of sentence embeddings."""

from typing import Any

import numpy as np

from keras_transformer.tasks.embedding.config import EmbedderConfig
from keras_transformer.tasks.embedding.metrics import cosines
from keras_transformer.tasks.task import LOSS, Metric
from keras_transformer.tasks.text_pairs import TextPairsTask


class EmbeddingTask(TextPairsTask):
    """Vectors of texts by a `TextEmbedder`, trained on pairs of texts that belong together."""

    name = "embedding"
    training = "keras_transformer.training.tasks.embedding:EmbeddingTraining"
    config_class = EmbedderConfig
    metrics = {
        "loss": LOSS,
        "recall_at_1": Metric("recall at 1", higher_is_better=True, of_answers=True),
    }

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.embedding.pipeline import Embedder

        return Embedder

    def answering_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.embedding.codec import EmbeddingAnswers

        return EmbeddingAnswers

    def similarities(self, pipeline, results, others) -> Any:
        """Returns a function of the dot products of vectors; see `TextPairsTask.similarities`."""
        ours, theirs = (np.asarray(pipeline.stacked(x), "float64") for x in (results, others))
        return lambda texts, partners: ours[texts] @ theirs[partners].T

    def of_pairs(self, pipeline, results, others) -> Any:
        """Returns the cosine of each pair, float64 `[T]`."""
        return cosines(pipeline.stacked(results), pipeline.stacked(others))
