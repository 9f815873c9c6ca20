"""Classification by the labels of the nearest examples, without training."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.checks import check_count, check_positive
from keras_transformer.tasks.single_pass.labels import Classification

NEIGHBORS, TEMPERATURE = 20, 0.07
BLOCK = 1024  # vectors that are compared at a time
SMALLEST = 1e-12  # of a length, so that a vector of zeros is similar to none


class NearestNeighbors:
    """Classifies vectors by a weighted vote of their nearest examples.

    Each of the k examples with the largest cosines votes for its label with the weight
    `exp(cosine / temperature)`. The share of a label in all votes is its probability.

    Args:
        vectors: Vectors of the examples, `[E, D]`.
        labels: List of E strings, the labels of the examples.
        neighbors: Number k of examples that vote; all of them if there are fewer.
        temperature: Divisor of cosines, above 0. Less of it gives the nearest more weight.

    Raises:
        ValueError: If there are no examples, or not a label for each of them; or an argument is out
            of range.

    Attributes:
        labels: The different labels, in alphabetical order.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.pipelines import NearestNeighbors
        >>> examples = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> nearest = NearestNeighbors(examples, ["cat", "cat", "dog"], neighbors=2)
        >>> nearest.classify(np.array([[0.1, 2.0]]))[0].label
        'dog'

    Reference: Wu et al. (2018), "Unsupervised Feature Learning via Non-Parametric Instance
    Discrimination", section 3.4; with these defaults in Caron et al. (2021), DINO, and Oquab et al.
    (2024), DINOv2.
    """

    def __init__(
        self,
        vectors: Any,
        labels: Sequence[str],
        neighbors: int = NEIGHBORS,
        temperature: float = TEMPERATURE,
    ):
        check_count("neighbors", neighbors)
        check_positive("temperature", temperature)
        self._vectors = _unit(vectors, "vectors")
        if len(labels) != len(self._vectors) or not len(labels):
            raise ValueError(
                "`labels` must have a label for each of the `vectors`, of which there is at least "
                f"one. Received: {len(labels)} labels, {len(self._vectors)} vectors."
            )
        self.labels = tuple(sorted({*labels}))
        numbers = {label: number for number, label in enumerate(self.labels)}
        self._numbers = np.array([numbers[label] for label in labels])
        self._neighbors, self._temperature = min(neighbors, len(labels)), temperature

    def classify(self, vectors: Any) -> list[Classification]:
        """Returns a `Classification` for each of the vectors `[B, D]`.

        Raises:
            ValueError: If they do not have as many features as the examples.
        """
        vectors = _unit(vectors, "vectors", self._vectors.shape[1])
        blocks = (vectors[first : first + BLOCK] for first in range(0, len(vectors), BLOCK))
        return [result for block in blocks for result in self._voted(block @ self._vectors.T)]

    def classify_examples(self) -> list[Classification]:
        """Returns a `Classification` of each example by the others.

        Raises:
            ValueError: If there is only one example.
        """
        count = len(self._vectors)
        if count < 2:
            raise ValueError("There must be at least two examples to classify them by each other.")
        results = []
        for first in range(0, count, BLOCK):
            cosines = self._vectors[first : first + BLOCK] @ self._vectors.T  # [b, E]
            rows = np.arange(len(cosines))
            cosines[rows, first + rows] = -np.inf
            results += self._voted(cosines, count - 1)
        return results

    def _voted(self, cosines, most=None):
        """Returns the results for cosines `[B, E]`; equal ones vote in the order of examples."""
        nearest = np.argsort(-cosines, axis=1, kind="stable")
        nearest = nearest[:, : min(self._neighbors, most or self._neighbors)]  # [B, k]
        best = np.take_along_axis(cosines, nearest, axis=1)
        votes = np.exp((best - best[:, :1]) / self._temperature)  # [B, k]
        shares = np.zeros((len(cosines), len(self.labels)))
        np.add.at(shares, (np.arange(len(cosines))[:, None], self._numbers[nearest]), votes)
        shares = (shares / shares.sum(axis=1, keepdims=True)).astype("float32")
        return [
            Classification(self.labels[row.argmax()], float(row.max()), False, row)
            for row in shares
        ]


def _unit(vectors, name, width=None):
    """Returns finite vectors `[N, D]` scaled to unit length, float32."""
    vectors = np.asarray(vectors, "float32")
    if vectors.ndim != 2 or not np.isfinite(vectors).all() or width not in (None, vectors.shape[1]):
        features = "D" if width is None else str(width)
        raise ValueError(
            f"`{name}` must be finite numbers [N, {features}]. "
            f"Received: an array of the shape {list(vectors.shape)}."
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, SMALLEST)
