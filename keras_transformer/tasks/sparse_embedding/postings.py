"""`Postings`: for each token, the texts whose sparse vectors have a weight for it."""

from collections.abc import Iterable
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
        slices = [slice(self.offsets[token], self.offsets[token + 1]) for token in ids]
        rows = np.concatenate([np.zeros(0, "int32"), *(self.rows[part] for part in slices)])
        products = [
            np.float64(weight) * self.weights[part].astype("float64")
            for weight, part in zip(weights, slices, strict=True)
        ]
        products = np.concatenate([np.zeros(0), *products])
        return np.bincount(rows.astype("int64"), products, self.count)
