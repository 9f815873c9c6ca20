"""`Postings`: for each token, the texts whose sparse vectors have a weight for it."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np


class Postings(NamedTuple):
    """Sparse vectors of N texts, sorted by token and then by text.

    Attributes:
        offsets: For each token of the vocabulary, where its postings begin, int64 `[V + 1]`; the
            last number is P, the number of postings.
        rows: Number of the text of each posting, counted from 0, int32 `[P]`.
        weights: Its weight, float32 `[P]`.
        count: Number of texts N.
    """

    offsets: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    count: int

    @classmethod
    def of_vectors(cls, vectors: Iterable[Any], size: int) -> "Postings":
        """Returns the postings of texts.

        Args:
            vectors: `SparseVector`s, or other objects with `ids` and `weights`.
            size: Number of tokens of the vocabulary.
        """
        vectors = list(vectors)
        empty = np.zeros(0)
        tokens = np.concatenate([empty, *(vector.ids for vector in vectors)]).astype("int64")
        weights = np.concatenate([empty, *(vector.weights for vector in vectors)])
        rows = np.repeat(np.arange(len(vectors)), [len(vector.ids) for vector in vectors])
        order = np.argsort(tokens, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(tokens, minlength=size))])
        return cls(
            offsets.astype("int64"),
            rows[order].astype("int32"),
            weights[order].astype("float32"),
            len(vectors),
        )

    def scores(self, ids, weights) -> np.ndarray:
        """Returns the dot products of a sparse vector with those of all texts, float64 `[N]`.

        Only the postings of its tokens are read. Products are exact in float64, and are added in
        the order of the ids.

        Args:
            ids: Ids of the tokens of the vector, `[K]`.
            weights: Their weights, `[K]`.
        """
        return scores_of([self], ids, weights, self.count)

    def products(self, ids, weights) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the texts of each token of a vector, and the products of both weights, float64.

        Args:
            ids, weights: See `scores`; a token beyond the vocabulary has no texts.
        """
        for token, weight in zip(ids, weights, strict=True):
            if token + 1 < len(self.offsets):
                part = slice(int(self.offsets[token]), int(self.offsets[token + 1]))
                yield self.rows[part], np.float64(weight) * self.weights[part].astype("float64")


def scores_of(several: Iterable[Postings], ids, weights, count) -> np.ndarray:
    """Returns the dot products of a sparse vector with those of all texts, float64 `[N]`.

    Args:
        several: `Postings`, each of some of the texts, in order.
        ids, weights: See `Postings.scores`.
        count: Number of all texts N.
    """
    pairs = [pair for postings in several for pair in postings.products(ids, weights)]
    rows = np.concatenate([np.zeros(0, "int64"), *(rows for rows, _ in pairs)])
    products = np.concatenate([np.zeros(0), *(products for _, products in pairs)])
    return np.bincount(rows, products, count)
