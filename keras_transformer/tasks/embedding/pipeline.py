"""The pipeline of sentence embeddings: a vector for each text."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.checks import is_integer
from keras_transformer.tasks.embedding.codec import EmbeddingAnswers, TextVector
from keras_transformer.tasks.embedding.model import TextEmbedder
from keras_transformer.tasks.single_pass.prompted_pass import PromptedPass
from keras_transformer.tasks.strings import check_sentences


class Embedder(EmbeddingAnswers, PromptedPass):
    """A trained `TextEmbedder` with its tokenizer.

    Args:
        model: A `TextEmbedder`.
        tokenizer: The `Tokenizer` of the model.
        max_length: Maximum length of a text in tokens, including its end token; longer texts are
            truncated. `None`: the model's `max_length`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `max_length` is above the model's, or tokenizer and model do not belong
            together.
    """

    model_class = TextEmbedder
    settings = ("dimensions", "prompt")
    dimensions: int | None = None

    def with_model(self, model: Any) -> "Embedder":  # noqa: D102
        pipeline = super().with_model(model)
        pipeline.dimensions = self.dimensions
        return pipeline

    def _set(self, name, value):
        if name == "prompt":
            super()._set(name, value)
            return
        self._check_dimensions(value)
        self.dimensions = value

    def answer_batch(self, examples: Sequence[str]) -> list[TextVector]:  # noqa: D102
        results = super().answer_batch(examples)
        if self.dimensions is None:
            return results
        values = self._shortened(self.stacked(results), self.dimensions)
        pairs = zip(results, values, strict=True)
        return [dataclasses.replace(result, values=row) for result, row in pairs]

    def embed(
        self,
        texts: Sequence[str],
        dimensions: int | None = None,
        batch_size: int = 64,
        prompt: str | None = None,
    ) -> np.ndarray:
        """Returns the vectors of texts, float32 `[T, D]`.

        Args:
            texts: List of strings of any length.
            dimensions: Number of features to keep, the first ones, which are scaled to unit length
                again if the model does so. `None`: all.
            batch_size: Number of texts embedded at a time. A batch contains texts of similar
                length.
            prompt: Name of the prompt in front of each text, or `""`: no prompt. `None`: the
                checkpoint's default, which is mostly none.

        Raises:
            TypeError: If `texts` is not a list of strings, or `dimensions` is not an integer.
            ValueError: If `dimensions` is out of range, or there is no such prompt.
        """
        self._check_dimensions(dimensions)
        pipeline = self if prompt is None else self.prompted(prompt)
        texts = check_sentences(texts, "texts")
        vectors = self.stacked(pipeline.answer(texts, batch_size=batch_size))
        return vectors if dimensions is None else self._shortened(vectors, dimensions)

    def _check_dimensions(self, dimensions):
        width = self.dimensions or self._width
        if dimensions is not None and not is_integer(dimensions):
            raise TypeError(
                f"`dimensions` must be an integer, or None. Received: dimensions={dimensions!r}."
            )
        if dimensions is not None and not 1 <= dimensions <= width:
            raise ValueError(
                f"`dimensions` must be between 1 and the model's {width}. "
                f"Received: dimensions={dimensions}."
            )

    def _shortened(self, vectors, dimensions):
        """Returns the first features of vectors `[T, D]`, normalised if the model does that."""
        vectors = vectors[:, :dimensions]
        if not self.model.config.head.normalize:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, np.finfo("float32").tiny)

    def stacked(self, results: Sequence[TextVector]) -> np.ndarray:
        """Returns the vectors of a list of `TextVector`s, float32 `[T, D]`."""
        width = len(results[0].values) if results else self.dimensions or self._width
        return np.array([result.values for result in results], "float32").reshape(-1, width)

    @property
    def _width(self):
        """Number of features of a vector."""
        config = self.model.config
        return config.head.width(config.encoder.d_model)

    def difference(self, other: Any) -> str | None:
        """Returns why two embedders cannot form an ensemble: no two models have the same space."""
        return super().difference(other) or (
            "vectors of different models cannot be compared or averaged"
        )
