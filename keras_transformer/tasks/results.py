"""Results of a model that generates text, however it is searched."""

import dataclasses

import numpy as np

from keras_transformer.decoding.hypotheses import exists

COLUMNS = ("text", "score", "truncated")
SPACE, END = "\u2581", "</s>"  # as SentencePiece writes them


@dataclasses.dataclass(frozen=True)
class Generated:
    """A text that a model generated for one input.

    Args:
        text: The text.
        score: Sum of the log-probabilities of its tokens, the end of the sentence included; from a
            beam divided by its penalty for the length.
        truncated: Whether the input was longer than the model's limit and was cut.
    """

    text: str
    score: float
    truncated: bool


class Translation(Generated):
    """A `Generated` text that translates the input."""


class Summary(Generated):
    """A `Generated` text that summarises the input."""


@dataclasses.dataclass(frozen=True)
class Score:
    """Log-probability of a given translation or other output.

    Args:
        score: Sum of the log-probabilities of its tokens, the end of the sentence included, but for
            one that was cut.
        tokens: Their number.
        truncated: Whether source or translation was longer than the model's limit and was cut.
    """

    score: float
    tokens: int
    truncated: bool


@dataclasses.dataclass(frozen=True)
class Alignment:
    """Attention of each token of a translation to the source.

    Args:
        source: The pieces of the source, S strings, the end of the sentence included.
        target: Those of the translation, T strings.
        weights: Array `[T, S]`, float32, whose rows sum to 1.
        translation: The `Translation`.
    """

    source: list
    target: list
    weights: np.ndarray
    translation: Translation

    def words(self):
        """Returns which word of the source each word of the translation attended to most.

        Words are what white space separates; a word's pieces are added up, and the end of a
        sentence is none. A translation of another script than the vocabulary's has words as well:
        those of its pieces.

        Returns:
            Pairs of integers from 0, word of the source and word of the translation, in the order
            of the translation. None if either is empty.
        """
        source, target = _words(self.source), _words(self.target)
        weights = np.zeros((target.max(initial=-1) + 1, source.max(initial=-1) + 1))  # [T', S']
        if not weights.size:
            return []
        inside = np.ix_(target >= 0, source >= 0)
        rows, columns = np.meshgrid(target[target >= 0], source[source >= 0], indexing="ij")
        np.add.at(weights, (rows, columns), self.weights[inside])
        return [(int(word), number) for number, word in enumerate(weights.argmax(axis=1))]


def to_n_best(outputs, n, kind=Translation):
    """Returns for each input a list of at most `n` results, no text twice.

    Args:
        outputs: Dictionary of `text` and `score`, `[B, M]`, the best first, and `truncated`, `[B]`;
            tensors.
        n: Most texts of each; there is at least one.
        kind: The class of a result, `Generated` or one of its subclasses.
    """
    results = []
    for texts, scores, truncated in zip(*(outputs[name].numpy() for name in COLUMNS), strict=True):
        distinct = {}
        for text, score in zip(texts, scores, strict=True):
            if exists(score) or not distinct:  # otherwise there are fewer
                text = text.decode("utf-8", "replace")
                distinct.setdefault(text, kind(text, float(score), bool(truncated)))
        results.append(list(distinct.values())[:n])
    return results


def to_best(outputs, kind=Translation):
    """Returns for each input the first result that `to_n_best` returns."""
    return [best for best, *_ in to_n_best(outputs, 1, kind)]


def _words(pieces):
    """The number of the word that each piece belongs to, -1 for none, as an array."""
    numbers, number, begins = [], -1, True
    for piece in pieces:
        if piece == END:
            numbers.append(-1)
            continue
        begins = begins or piece.startswith(SPACE)
        is_word = bool(piece.strip(SPACE))
        if is_word and begins:
            number, begins = number + 1, False
        numbers.append(number if is_word else -1)
    return np.array(numbers, int)
