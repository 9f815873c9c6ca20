"""Settings of the outputs of loaded exports, like those of a run: words, and scores of tokens."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from keras_transformer.decoding import Beam
from keras_transformer.export.runtime import changed
from keras_transformer.export.words import AXES, BANNED, FIELDS, PREFIX, TERMS
from keras_transformer.options import OptionError
from keras_transformer.tasks.answering import TextAnswering
from keras_transformer.tasks.results import TOKEN_SCORES
from keras_transformer.tasks.wording import SETTINGS, Wording, WordingTokens

Kind = TypeVar("Kind", bound="OpenWords")
Ids = TypeVar("Ids", bound="OpenWordIds")

WORDS = "words"  # in the metadata, the result of `WordInputs.metadata`
NEEDED = "Export the run again with --takes-words."
AXES_OF = {  # as errors call them
    PREFIX: ("{} tokens",),
    BANNED: ("{} phrases in all their ways", "{} tokens in a phrase"),
    TERMS: ("{} terms", "{} spellings of a term", "{} tokens in a spelling"),
}


class OpenWords(TextAnswering):
    """Part of loaded exports with the words of their outputs, and the scores of tokens.

    Attributes:
        wording: The `Wording`.
        token_scores: Whether results have `token_scores`.
    """

    path: Any
    token_scores = False
    wording = Wording()

    @property
    def takes_words(self) -> bool:
        """`True` if each call takes words."""
        raise NotImplementedError

    @property
    def scores_tokens(self) -> bool:
        """`True` if the export returns the scores of tokens."""
        raise NotImplementedError

    @property
    def searches_terms(self) -> bool:
        """`True` if the search takes the terms of a glossary."""
        return isinstance(self.search, Beam)

    @property
    def settings(self) -> tuple[str, ...]:  # noqa: D102
        words = SETTINGS if self.takes_words else ()
        return (*words, TOKEN_SCORES) if self.scores_tokens else words

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        prefixes = ("prefixes",) if self.takes_words else ()
        return *super().accepts, *self.settings, *prefixes

    def check_settings(self, settings: dict[str, Any]) -> None:  # noqa: D102
        for name in settings:
            if name in SETTINGS and name not in self.settings:
                raise OptionError(name, f"needs an export that takes words: {self.path}. {NEEDED}")
            if name == TOKEN_SCORES and name not in self.settings:
                raise OptionError(
                    name,
                    f"needs an export that returns them: {self.path}. Export the run again with "
                    "--token-scores.",
                )
        super().check_settings(settings)

    def with_settings(self: Kind, *, token_scores: bool | None = None, **settings: Any) -> Kind:
        """Returns an export that differs in the words of its outputs, or the scores of tokens.

        Args:
            token_scores: Whether results have `token_scores`.
            **settings: `glossary`, `banned` and `prefix`; see `Wording`.

        Raises:
            TypeError, ValueError: See `Wording`; or if the export takes no words, a glossary
                without a beam, or returns no scores of tokens.
        """
        scores = {} if token_scores is None else {TOKEN_SCORES: token_scores}
        self.check_settings({**settings, **scores})
        other = changed(self, **scores) if scores else self
        if settings:
            other = other.with_wording(dataclasses.replace(self.wording, **settings))
        other.check_words()
        return other

    @property
    def has_words(self) -> bool:
        """`True` if outputs have words."""
        return self.wording != Wording()

    def with_wording(self: Kind, wording: Wording) -> Kind:
        """Returns an export with these words."""
        return changed(self, wording=wording)

    def check_words(self) -> None:
        """Raises an `OptionError` if there is a glossary, but the search has no beam."""
        if self.wording.glossary and not self.searches_terms:
            raise OptionError(
                "glossary",
                f"needs a beam, and {self.path} is searched with greedy search. Export the run "
                "again with --takes-words --beam 10, or choose its beam with --beam.",
            )

    def check_no_words(self, what: str) -> None:
        """Raises a `ValueError` if outputs have words, which a method does not take."""
        if self.has_words:
            raise ValueError(f"`{what}` takes no words: use `with_settings` without them.")


class OpenWordIds(OpenWords):
    """Part of loaded exports that take the token ids of words; see `WordInputs`."""

    metadata: dict[str, Any]
    tokenizers: Any
    _tokens: Any = None

    @property
    def takes_words(self) -> bool:  # noqa: D102
        return WORDS in self.metadata

    @property
    def scores_tokens(self) -> bool:  # noqa: D102
        return TOKEN_SCORES in self.metadata

    def with_wording(self: Ids, wording: Wording) -> Ids:  # noqa: D102
        begin = int(self.metadata[WORDS]["begin"])
        tokens = WordingTokens(wording, self.tokenizers.target, begin)
        return changed(self, wording=wording, _tokens=tokens)

    def word_inputs(
        self, texts: Sequence[str], numbers: Sequence[int] | None = None
    ) -> dict[str, np.ndarray]:
        """Returns the inputs with the words of texts; empty if the export takes none.

        Args:
            texts: The sources.
            numbers: Their indices among all sources, which select the prefixes. `None`: from 0 on.

        Raises:
            OptionError: If a word does not fit into a graph of fixed shape, or a prefix is missing.
        """
        if not self.takes_words:
            return {}
        stated = self.metadata[WORDS]
        numbers = range(len(texts)) if numbers is None else numbers
        tokens = self._tokens or WordingTokens(self.wording, self.tokenizers.target)
        given = dict(zip(tokens.names, tokens.values(texts, numbers), strict=True))
        pad_id, inputs = self.tokenizers.target.pad_id, {}
        for name in stated["inputs"]:
            values = np.asarray(given.get(FIELDS[name], np.full([1] * (AXES[name] + 1), pad_id)))
            values = values if name != BANNED or values.ndim == 3 else values[np.newaxis]
            values = np.broadcast_to(values, [len(texts), *values.shape[1:]]).astype(np.int32)
            sizes = (stated["sizes"] or {}).get(name)
            inputs[name] = values if sizes is None else self._fitted(name, values, sizes, numbers)
        return inputs

    def without_words(self, count: int) -> dict[str, np.ndarray]:
        """Returns the inputs of `count` sources without words; empty if the export takes none."""
        plain = changed(self, wording=Wording(), _tokens=None)
        return plain.word_inputs([""] * count)

    def _fitted(self, name, values, sizes, numbers):
        """Returns the values with padding up to the sizes of the axes after the batch."""
        pad_id, pads = self.tokenizers.target.pad_id, [(0, 0)]
        for axis, (most, text) in enumerate(zip(sizes, AXES_OF[name], strict=True), start=1):
            size = values.shape[axis]
            pads.append((0, max(most - size, 0)))
            beyond = np.take(values, range(most, size), axis) != pad_id
            rows = np.flatnonzero(np.any(beyond, axis=tuple(range(1, values.ndim))))
            if rows.size:
                raise OptionError(
                    "glossary" if name == TERMS else name,
                    f"is too large for {self.path}, which takes at most {text.format(most)}. "
                    f"Received: {size} for input number {numbers[rows[0]] + 1}.",
                )
            values = np.take(values, range(min(size, most)), axis)
        return np.pad(values, pads, constant_values=pad_id)
