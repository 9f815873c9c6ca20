"""`SparseVector`, the result of models that give the tokens of a vocabulary weights for a text."""

import dataclasses
import json
from typing import Any

import numpy as np

from keras_transformer.tasks.single_pass.result import Result


@dataclasses.dataclass(frozen=True)
class SparseVector(Result):
    """The tokens of a vocabulary that have a weight for a text, the largest weight first.

    Args:
        ids: Ids of the tokens, int32 `[N]`.
        weights: Their weights, above 0, float32 `[N]`.
        tokens: Their texts, as the vocabulary writes them.
        truncated: Whether the text was longer than the model's limit and was truncated.
        least: Tokens that are missing may have a weight up to this one; 0 if none is missing.
    """

    ids: np.ndarray = dataclasses.field(compare=False, repr=False)
    weights: np.ndarray = dataclasses.field(compare=False, repr=False)
    tokens: tuple[str, ...]
    truncated: bool
    least: float = dataclasses.field(default=0.0, compare=False, repr=False)

    @property
    def text(self) -> str:
        """An object in JSON from tokens to weights, as `predict` writes it: no digit is lost."""
        weights = [float(str(weight)) for weight in self.weights]
        return json.dumps(dict(zip(self.tokens, weights, strict=True)), ensure_ascii=False)

    @property
    def score(self) -> float:
        """0, the value of `score_of` for an equal direction."""
        return 0.0

    @property
    def numbers(self) -> np.ndarray:
        """The weights."""
        return self.weights

    def similarity(self, other: "SparseVector") -> float:
        """Returns the dot product with another vector of the same model."""
        theirs = other._by_id()
        pairs = self._by_id().items()
        return float(sum(weight * theirs.get(token, 0.0) for token, weight in pairs))

    def dense(self, size: int) -> np.ndarray:
        """Returns the weights of all tokens, float32 `[V]`, for a vocabulary of `size` tokens."""
        vector = np.zeros(size, "float32")
        vector[self.ids] = self.weights
        return vector

    def score_of(self, other: Any) -> float:
        """Returns the cosine distance of two vectors, from 0 to 1."""
        lengths = np.sqrt(self.similarity(self) * other.similarity(other))
        return float(1 - self.similarity(other) / max(lengths, np.finfo("float64").tiny))

    def score_error(self, other: Any) -> float:
        """Returns the cosine distance, which no number of tokens makes undefined."""
        if not len(self.ids) and not len(other.ids):
            return 0.0
        return self.score_of(other)

    def gap(self, other: Any) -> float:
        """Returns the largest difference between the weights of a token.

        A token that one vector lacks may be missing there because others have larger weights.
        """
        ours, theirs = self._by_id(), other._by_id()
        gaps = [abs(weight - theirs[token]) for token, weight in ours.items() if token in theirs]
        for vector, known, least in ((ours, theirs, other.least), (theirs, ours, self.least)):
            gaps += [weight - least for token, weight in vector.items() if token not in known]
        return max(0.0, *gaps) if gaps else 0.0

    def _by_id(self):
        return dict(zip(self.ids.tolist(), self.weights.astype("float64").tolist(), strict=True))
