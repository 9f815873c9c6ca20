"""Results of models that generate text."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from keras_transformer.decoding.hypotheses import exists

COLUMNS = ("text", "score", "truncated")
COMPLETE = "complete"  # a further column of searches
TOKENS, TOKEN_SCORES = "tokens", "token_scores"  # further columns on request
SPACE, END = "\u2581", "</s>"  # in SentencePiece's notation


@dataclasses.dataclass(frozen=True)
class Generated:
    """A text that a model generated for one input.

    Args:
        text: The text.
        score: Sum of the log-probabilities of the tokens, including the end token. In beam search,
            the sum is divided by the length penalty.
        truncated: Whether the input was longer than the model's limit and was truncated.
        complete: Whether the output ended before its maximum length. `False`: text is missing, or
            the model repeated itself. `None`: not known.
        token_scores: Pairs of a token, as the vocabulary writes it, and its log-probability, in
            order, with the end token. `None`: not requested.

    Attributes:
        needs_end: Whether text is missing in an output that is not complete. A text that continues
            another one may stop anywhere.
    """

    needs_end: ClassVar[bool] = False
    text: str
    score: float
    truncated: bool
    complete: bool | None = dataclasses.field(default=None, compare=False, kw_only=True)
    token_scores: tuple[tuple[str, float], ...] | None = dataclasses.field(
        default=None, compare=False, kw_only=True
    )


class Translation(Generated):
    """A `Generated` text that translates the input."""

    needs_end = True


class Summary(Generated):
    """A `Generated` text that summarises the input."""

    needs_end = True


@dataclasses.dataclass(frozen=True)
class Score:
    """Log-probability of a given translation or other output.

    Args:
        score: Sum of the log-probabilities of the tokens, including the end token unless the text
            was truncated.
        tokens: Number of these tokens.
        truncated: Whether source or translation was longer than the model's limit and was
            truncated.
    """

    score: float
    tokens: int
    truncated: bool


@dataclasses.dataclass(frozen=True)
class Alignment:
    """Attention of each token of a translation to the source.

    Args:
        source: Tokens of the source, S strings, including the end token.
        target: Tokens of the translation, T strings, including the end token.
        weights: Array `[T, S]`, float32, whose rows sum to 1.
        translation: The `Translation`.
        marks: Tokens that belong to no word, such as those of languages.
    """

    source: list[str]
    target: list[str]
    weights: np.ndarray
    translation: Translation
    marks: tuple = ()

    def words(self) -> list[tuple[int, int]]:
        """Returns the source word that each word of the translation attended to most.

        Words are separated by white space. The weights of a word's tokens are added up, and end
        tokens are ignored. Text that the vocabulary represents by unknown tokens also has words,
        made of these tokens.

        Returns:
            List of pairs of indices, counted from 0, of a source word and a word of the
            translation, in the order of the translation; empty if either text is empty.
        """
        source, target = (_words(side, {END, *self.marks}) for side in (self.source, self.target))
        weights = np.zeros((target.max(initial=-1) + 1, source.max(initial=-1) + 1))  # [T', S']
        if not weights.size:
            return []
        inside = np.ix_(target >= 0, source >= 0)
        rows, columns = np.meshgrid(target[target >= 0], source[source >= 0], indexing="ij")
        np.add.at(weights, (rows, columns), self.weights[inside])
        return [(int(word), number) for number, word in enumerate(weights.argmax(axis=1))]


def to_n_best(outputs, n, kind=Translation, pairs=None) -> list[list]:
    """Returns for each input a list of at most `n` results with different texts.

    Args:
        outputs: Dictionary of the tensors `text` and `score`, `[B, M]`, the best first, and
            `truncated`, `[B]`; optionally `complete`, boolean `[B, M]`.
        n: Maximum number of results of an input; there is at least one.
        kind: Class of the results, `Generated` or a subclass.
        pairs: Function from token ids `[L]` and their scores `[L]` to the `token_scores` of a
            result, for outputs that also have `tokens` and `token_scores`, both `[B, M, L]`.
    """
    results = []
    columns = [np.asarray(outputs[name]) for name in COLUMNS]
    whole = np.asarray(outputs[COMPLETE]).tolist() if COMPLETE in outputs else None
    for number, (texts, scores, truncated) in enumerate(zip(*columns, strict=True)):
        distinct, ends = {}, [None] * len(texts) if whole is None else whole[number]
        for place, (text, score, end) in enumerate(zip(texts, scores, ends, strict=True)):
            text = text.decode("utf-8", "replace")
            if text in distinct or distinct and not exists(score):  # the search found fewer
                continue
            gains = None
            if pairs is not None:  # an empty input has no tokens and a score of 0
                rows = (np.asarray(outputs[name][number, place]) for name in (TOKENS, TOKEN_SCORES))
                gains = pairs(*rows) if score else ()
            distinct[text] = kind(
                text, float(score), bool(truncated), complete=end, token_scores=gains
            )
        results.append(list(distinct.values())[:n])
    return results


def to_best(outputs, kind=Translation, pairs=None) -> list:
    """Returns the best result for each input; see `to_n_best`."""
    return [best for best, *_ in to_n_best(outputs, 1, kind, pairs)]


def pairs_of(tokenizer) -> Callable[[np.ndarray, np.ndarray], tuple[tuple[str, float], ...]]:
    """Returns the function from token ids and their scores to the `token_scores` of a result.

    Args:
        tokenizer: The `Tokenizer` of outputs.
    """

    def pairs(tokens, scores):
        real = tokens != tokenizer.pad_id
        pieces = tokenizer.pieces(tokens[real].tolist())
        return tuple(zip(pieces, scores[real].tolist(), strict=True))

    return pairs


def _words(pieces, marks):
    """Returns an array with the number of the word that each token belongs to, -1 for none."""
    numbers, number, begins = [], -1, True
    for piece in pieces:
        if piece in marks:
            numbers.append(-1)
            continue
        begins = begins or piece.startswith(SPACE)
        is_word = bool(piece.strip(SPACE))
        if is_word and begins:
            number, begins = number + 1, False
        numbers.append(number if is_word else -1)
    return np.array(numbers, int)
