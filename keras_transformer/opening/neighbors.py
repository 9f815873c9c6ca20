"""Lines whose vectors are classified by the labels of similar examples."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.opening.lines import PassLines

VECTORS = ("embedding", "image_embedding")  # tasks whose answers are vectors


@dataclasses.dataclass(frozen=True)
class NeighborLines(PassLines):
    """Labels of lines by the votes of the examples with the most similar vectors.

    Args:
        answering: See `PassLines`; its answers are vectors.
        neighbors, temperature: See `NearestNeighbors`.
        nearest: The `NearestNeighbors`. `None`: there are no examples yet.
    """

    neighbors: int = 20
    temperature: float = 0.07
    nearest: Any = None

    @classmethod
    def opened(cls, path: Any, neighbors: int, temperature: float) -> "NeighborLines":
        """Returns lines without examples for a run or an export.

        Raises:
            ValueError: If the answers of the model are not vectors.
        """
        from keras_transformer.opening.forms import open as open_model

        answering: Any = open_model(path)
        if answering.task not in VECTORS:
            raise ValueError(
                f"{path}: neighbors need a model whose answers are vectors, of the task embedding "
                f"or image_embedding. Received: a model for {answering.task}."
            )
        return cls(answering, neighbors, temperature)

    def taught(
        self, inputs: Sequence[Any], labels: Sequence[str], batch_size: int
    ) -> "NeighborLines":
        """Returns lines with these examples.

        Raises:
            ValueError: If an example cannot be read.
        """
        from keras_transformer.pipelines import NearestNeighbors

        rows = super().__call__(range(1, len(inputs) + 1), list(inputs), batch_size)
        refused = [row for row in rows if isinstance(row, ValueError)]
        if refused:
            raise refused[0]
        vectors = np.array([result.values for (result,) in rows])
        nearest = NearestNeighbors(vectors, labels, self.neighbors, self.temperature)
        return dataclasses.replace(self, nearest=nearest)

    def __call__(self, numbers, examples, batch_size, progress=None) -> list:
        """Returns for each line a list of one `Classification`, or the `ValueError` of its line."""
        rows = super().__call__(numbers, examples, batch_size, progress)
        answered = [row[0] for row in rows if not isinstance(row, ValueError)]
        if not answered:
            return rows
        labels = iter(self.nearest.classify(np.array([result.values for result in answered])))
        cut = iter(answered)
        return [
            row
            if isinstance(row, ValueError)
            else [dataclasses.replace(next(labels), truncated=next(cut).truncated)]
            for row in rows
        ]
