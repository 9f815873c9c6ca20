"""Loaded SavedModels that take words as strings, by their signature `words`."""

import reprlib
from collections.abc import Sequence
from typing import Any, TypeVar

import tensorflow as tf

from keras_transformer.export.saved_model.words import ERROR, LINES, SEPARATOR, strings_of
from keras_transformer.export.worded import WORDS, OpenWords
from keras_transformer.export.words import BANNED, PREFIX, TERMS
from keras_transformer.options import OptionError
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
            self._check_words(texts, numbers, outputs[ERROR].numpy())
            return to_best(outputs, other.result, other._pairs)

        results = map_numbered(best, sentences, numbers, batch_size, progress)
        return results[0] if one else results

    def _check_words(self, sentences, numbers, errors):
        """Raises an `OptionError` for the first sentence with an `error` in its words."""
        for text, number, error in zip(sentences, numbers, errors, strict=True):
            if not error:
                continue
            name, _, reason = error.decode().removeprefix("`").partition("` ")
            given = self.wording.terms_of(text) if name == TERMS else getattr(self.wording, name)
            raise OptionError(
                "glossary" if name == TERMS else name,
                f"{reason} Received: {len(given)}, {reprlib.repr(given)}, for input number "
                f"{number + 1}.",
            )

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
        terms = map(self.wording.terms_of, texts)
        written = [target for row in terms for term in row for target in term]
        _check_separable("glossary", written)
        _check_separable("banned", self.wording.banned)
        words = strings_of(self.wording, texts, numbers)
        return {name: tf.constant(words[name], tf.string, [len(texts)]) for name in self._taken}


def _check_separable(name, phrases):
    """Raises an `OptionError` if a phrase has a character that separates two in a SavedModel."""
    for phrase in phrases:
        if LINES in phrase or SEPARATOR in phrase:
            raise OptionError(
                name,
                "must have no newlines and tabs in a phrase for a SavedModel. "
                f"Received: {phrase!r}.",
            )


def pairs_of_pieces(pieces: Any, scores: Any) -> tuple[tuple[str, float], ...]:
    """Returns the `token_scores` of a result for the names of its tokens, bytes, and scores."""
    rows = zip(pieces.tolist(), scores.tolist(), strict=True)
    return tuple((piece.decode(), score) for piece, score in rows if piece)
