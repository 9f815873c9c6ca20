"""Loaded SavedModels that take words as strings, by their signature `words`."""

from collections.abc import Sequence
from typing import Any, TypeVar

import tensorflow as tf

from keras_transformer.export.saved_model.words import SEPARATOR
from keras_transformer.export.worded import WORDS, OpenWords
from keras_transformer.export.words import BANNED, PREFIX, TERMS
from keras_transformer.tasks.answering import Progress
from keras_transformer.tasks.results import TOKEN_SCORES, to_best
from keras_transformer.tasks.strings import check_sentences, map_numbered
from keras_transformer.tensors import Tensor

Kind = TypeVar("Kind", bound="OpenWordStrings")


class OpenWordStrings(OpenWords):
    """Part of loaded SavedModels with the words of their outputs; see `SentencesAndWords`.

    Attributes:
        wording: The `Wording`.
    """

    _model: Any
    result: Any

    @property
    def takes_words(self) -> bool:  # noqa: D102
        return WORDS in self._model.signatures

    @property
    def scores_tokens(self) -> bool:  # noqa: D102
        return TOKEN_SCORES in self._model.signatures

    @property
    def searches_terms(self) -> bool:  # noqa: D102
        return TERMS in self._taken

    @property
    def _pairs(self):
        return pairs_of_pieces if self.token_scores else None

    @property
    def _taken(self):
        """Names of the inputs of the signature for words."""
        _, inputs = self._model.signatures[WORDS].structured_input_signature
        return [name for name in (PREFIX, BANNED, TERMS) if name in inputs]

    def check_words(self: Any) -> None:  # noqa: D102
        super().check_words()
        self._check()

    def answer(  # noqa: D102
        self: Any,
        inputs: Any,
        search: Any = None,
        batch_size: int = 64,
        progress: Progress = None,
        numbers: Sequence[int] | None = None,
    ) -> Any:
        if not self.has_words:
            return super().answer(inputs, search, batch_size, progress)
        other = self if search is None else self.with_search(search)
        one = self.is_one(inputs)
        sentences = self.check_inputs([inputs] if one else inputs)

        def best(texts, numbers):
            outputs = other._generate(check_sentences(texts), numbers=numbers)
            return to_best(outputs, other.result, other._pairs)

        results = map_numbered(best, sentences, numbers, batch_size, progress)
        return results[0] if one else results

    def word_inputs(
        self, sentences: Sequence[str], numbers: Sequence[int] | None = None
    ) -> dict[str, Tensor]:
        """Returns the inputs of the signature for words besides the sentences.

        Args:
            sentences: The sources.
            numbers: Their indices among all sources, which select the prefixes. `None`: from 0 on.
        """
        numbers = range(len(sentences)) if numbers is None else numbers
        texts = [text.decode() if isinstance(text, bytes) else text for text in sentences]
        terms = [[SEPARATOR.join(term) for term in self.wording.terms_of(text)] for text in texts]
        most = max(map(len, terms), default=0)
        count, banned = len(texts), list(self.wording.banned)
        words = {
            PREFIX: tf.constant(self.wording.prefixes(numbers), tf.string, [count]),
            BANNED: tf.constant([banned] * count, tf.string, [count, len(banned)]),
            TERMS: tf.constant(
                [row + [""] * (most - len(row)) for row in terms], tf.string, [count, most]
            ),
        }
        return {name: words[name] for name in self._taken}


def pairs_of_pieces(pieces: Any, scores: Any) -> tuple[tuple[str, float], ...]:
    """Returns the `token_scores` of a result for the names of its tokens, bytes, and scores."""
    rows = zip(pieces.tolist(), scores.tolist(), strict=True)
    return tuple((piece.decode(), score) for piece, score in rows if piece)
