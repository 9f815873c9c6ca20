"""A `Transformer` in use: texts generated for a source, scores of texts, and alignments."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Beam, Constraints, Greedy, Sample, Shortlisted
from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.models.transformer import Transformer
from keras_transformer.options import OptionError
from keras_transformer.tasks.answering import SourceAnswering
from keras_transformer.tasks.details import Details
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.results import Alignment, Score, to_best
from keras_transformer.tasks.strings import (
    check_sentences,
    map_sorted,
    trace_alignment,
    trace_score,
    traced_once,
)
from keras_transformer.tasks.wording import SETTINGS, Wording, WordingTokens
from keras_transformer.text.shortlist import Shortlist
from keras_transformer.text.tokenizers import Tokenizer, Tokenizers

Kind = TypeVar("Kind", bound="ConditionalGenerator")

# Size of a beam with a glossary: the hypotheses share it by the terms that they contain. With 4 or
# 5, outputs are worse than without a glossary; docs/glossaries.md, "How well terms are placed".
WITH_TERMS = 10


class ConditionalGenerator(SourceAnswering, Generator):
    """A trained `Transformer` with its tokenizers, which generates a text for a source.

    Args:
        model, tokenizer, max_length: See `TextPipeline`.
        shortlist: A `Shortlist` that restricts every search to the candidates of the sentence; see
            `Shortlisted`. It does not change the scores of given outputs. `None`: no shortlist.
        search: See `Generator`.
        source_language, target_language: Languages of a multilingual model, such as `"deu_Latn"`.
            `None`: the defaults of the tokenizer.

    Attributes:
        wording: The `Wording`, words that outputs must or must not contain.
        token_scores: Whether results have `token_scores`.
    """

    model_class = Transformer
    settings = (*SETTINGS, "token_scores")
    wording = Wording()
    token_scores = False
    _shared = ("_searcher", "_scorer", "_aligner")

    def __init__(
        self,
        model: keras.Model | Sequence[keras.Model],
        tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
        max_length: int | None = None,
        shortlist: Shortlist | None = None,
        search: Greedy | Beam | Sample | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ):
        if source_language is not None or target_language is not None:
            tokenizer = Tokenizers.of(tokenizer).with_languages(source_language, target_language)
        super().__init__(model, tokenizer, max_length, search)
        self._check_languages()
        # Hidden in a function from `tf.Module`, which would track it.
        restricted = None if shortlist is None else Shortlisted(self.whole, shortlist)
        self._restricted = lambda: restricted
        self._wording_tokens: Callable[[], WordingTokens | None] = lambda: None
        self._scorer = traced_once(functools.partial(trace_score, self))
        self._aligner = traced_once(functools.partial(trace_alignment, self))

    @property
    def shortlist(self) -> Any:
        """The `Shortlist`, or `None`."""
        restricted = self._restricted()
        return None if restricted is None else restricted.shortlist

    @property
    def searched(self) -> Any:
        """The predictor that the searches use, with the shortlist if there is one."""
        return self._restricted() or self.whole

    def with_model(self: Kind, model: Any) -> Kind:  # noqa: D102
        return self._with(model, self.shortlist)

    def with_shortlist(self: Kind, shortlist: Shortlist | None) -> Kind:
        """Returns a pipeline that differs in its `Shortlist`; `None` removes the shortlist."""
        return self._with(self._given(), shortlist)

    def with_search(self: Kind, search: Any) -> Kind:  # noqa: D102
        return self._shared_with(self._with(self._given(), self.shortlist, search))

    @property
    def aligns(self) -> bool:  # noqa: D102
        return True

    def with_languages(self: Kind, source: str | None = None, target: str | None = None) -> Kind:
        """Returns a pipeline that differs in its languages, with the same graphs.

        Args:
            source, target: Codes of languages; `None` keeps one.

        Raises:
            ValueError: If the model does not have a language, or no languages to choose from.
        """
        if not self.has_languages:
            return super().with_languages(source, target)
        tokenizers = self.tokenizers.with_languages(source, target)
        given = (self._given(), tokenizers, self.max_length, self.shortlist, self.search)
        return self._shared_with(self._worded(type(self)(*given)))

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        return *super().accepts, *self.settings, "prefixes"

    def with_settings(self: Kind, *, token_scores: bool | None = None, **settings: Any) -> Kind:
        """Returns a pipeline that differs in some of its `settings`, with the same graphs.

        Args:
            token_scores: Whether results have `token_scores`, the log-probability of each token.
            **settings: `glossary`, `banned` and `prefix`; see `Wording`.

        Raises:
            TypeError, ValueError: See `Wording`; or if a setting is unknown.
        """
        self.check_settings(settings)
        if not settings and token_scores is None:
            return self
        other = self._shared_with(self._with(self._given(), self.shortlist))
        if settings:
            wording = dataclasses.replace(self.wording, **settings)
            begin = self.model.config.head.rules.beginning_length
            tokens = WordingTokens(wording, self.target_tokenizer, begin)
            other.wording, other._wording_tokens = wording, lambda: tokens
        other.token_scores = self.token_scores if token_scores is None else token_scores
        return other

    def _worded(self, other):
        """Returns a pipeline after giving it the settings of this one."""
        other.wording, other._wording_tokens = self.wording, self._wording_tokens
        other.token_scores = self.token_scores
        return other

    @property
    def details(self) -> Details:  # noqa: D102
        tokens = self._wording_tokens()
        if tokens is None:
            return Details(token_scores=self.token_scores)
        starts = tokens.word_starts if self.wording.glossary else None
        starts = None if starts is None else tuple(starts.tolist())
        return Details(tokens.names, starts, self.token_scores)

    @property
    def built_in(self) -> Constraints | None:  # noqa: D102
        tokens = self._wording_tokens()
        return None if tokens is None else tokens.built_in

    def _constraints(self, inputs, numbers):
        tokens = self._wording_tokens()
        return [] if tokens is None else tokens.values(inputs, numbers)

    @property
    def default_search(self) -> Greedy | Beam | Sample:
        """`search`; with a glossary a beam of at least `WITH_TERMS` hypotheses."""
        return self.search_for(1) if self.wording.glossary else self.search

    def search_for(self, n: int) -> Beam:
        """Returns the default search for `n` outputs; see `Generator.search_for`.

        With a glossary, it has at least `WITH_TERMS` hypotheses.
        """
        return super().search_for(max(n, WITH_TERMS) if self.wording.glossary else n)

    def check(self, search: Any, n_best: int = 1) -> None:  # noqa: D102
        super().check(search, n_best)
        if self.wording.glossary and not isinstance(search, Beam):
            raise OptionError("glossary", f"needs a beam. Received: search={search!r}.")

    def _check_languages(self):
        """Raises `ValueError` if only one of model and tokenizers has tokens of languages."""
        for model in self.models:
            rules = model.config.head.rules
            languages = self.tokenizers.languages
            apart = languages is not None and languages.codes is None
            if rules.has_languages != apart:
                raise ValueError(
                    "`tokenizer` must have languages if the model has `language_codes`, and no "
                    "languages otherwise, except for codes that are written in texts. Received: "
                    f"language_codes={rules.language_codes!r}, languages={languages is not None}."
                )

    def _with(self, model, shortlist, search=None):
        search = self.search if search is None else search
        return self._worded(type(self)(model, self.tokenizers, self.max_length, shortlist, search))

    def score(
        self, sources: Sequence[str], targets: Sequence[str], batch_size: int = 64
    ) -> list[Score]:
        """Returns the log-probabilities of given outputs.

        Args:
            sources: List of strings.
            targets: List of outputs, such as translations, one string for each source.
            batch_size: Number of pairs scored at a time.

        Returns:
            List of `Score`.

        Raises:
            TypeError: If `sources` or `targets` is not a list of strings.
            ValueError: If the lists differ in length.
        """
        sources, targets = (
            check_sentences(sources, "sources"),
            check_sentences(targets, "targets"),
        )
        if len(sources) != len(targets):
            raise ValueError(
                "`targets` must have one text for each source. "
                f"Received: {len(sources)} sources, {len(targets)} targets."
            )

        def score(pairs):
            sides = (tf.constant(side) for side in zip(*pairs, strict=True))
            outputs = self._scorer()(*sides, *self.front([source for source, _ in pairs]))
            columns = (outputs[name].numpy().tolist() for name in ("score", "tokens", "truncated"))
            return [Score(*row) for row in zip(*columns, strict=True)]

        pairs = list(zip(sources, targets, strict=True))
        return map_sorted(score, pairs, batch_size, key=lambda pair: sum(map(len, pair)))

    def align(
        self,
        sentences: Sequence[str],
        layer: int = -1,
        head: int | None = None,
        batch_size: int = 64,
        progress: Callable[[int], object] | None = None,
    ) -> list[Alignment]:
        """Generates outputs by greedy search, with the attention of each token to the source.

        The attention of an ensemble is the mean over its models.

        Args:
            sentences: List of strings of any length.
            layer: Number of the decoder's layer, which every model must have.
            head: Number of the attention head, which every model must have. `None`: the mean over
                all heads.
            batch_size: Number of sentences decoded at a time.
            progress: See `n_best`.

        Returns:
            List of `Alignment`.

        Raises:
            ValueError: If there is no such layer or head.
        """
        for model in self.models:
            check_alignment((layer, head), model.config)

        def align(batch):
            graph = self._aligner(self.greedy.kind, layer, head)
            values = self.greedy.values(range(len(batch)))
            outputs = graph(tf.constant(batch), *self.front(batch), *values)
            columns = (outputs[name].numpy() for name in ("source", "target", "weights"))
            rows = zip(*columns, to_best(outputs, self.result), strict=True)
            return [self._alignment(*row) for row in rows]

        return map_sorted(align, check_sentences(sentences), batch_size, progress=progress)

    def reading(self, sentence: str) -> tuple[Any, dict[str, tuple[list[str], list[str]]], bool]:
        """Returns the sentence and the output of greedy search; see `TextPipeline.reading`.

        A decoder position reads a token and predicts the next one. Cross-attention labels the
        position with the predicted token, and self-attention with the token that it reads.
        """
        self.front([sentence])  # which refuses a missing or an unknown language
        source, truncated, _ = self.encode(tf.constant([sentence]))  # [1, S]
        output = self.greedy(self.searched, source, self.options()).tokens[0, 0]  # [L]
        config = self.model.config
        target = [int(token) for token in output.numpy() if token != config.tokens.pad_id]  # [T]
        begin = (
            int(source[0, 0]) if config.head.rules.starts_with_language else config.tokens.bos_id
        )
        inputs = [begin, *target[:-1]]
        read = self.source_tokenizer.pieces(self.model.read_source(source)[0].numpy())
        chosen, before = (self.target_tokenizer.pieces(ids) for ids in (target, inputs))
        pieces = {"cross": (chosen, read), "encoder": (read, read), "decoder": (before, before)}
        arguments = {"source": source, "target": tf.constant([inputs])}
        return arguments, pieces, bool(truncated[0])

    def _alignment(self, source, target, weights, translation):
        source, target = (
            side[: np.count_nonzero(side != self.model.config.tokens.pad_id)]
            for side in (source, target)
        )
        pieces = [
            tokenizer.pieces(side)
            for tokenizer, side in zip(self.tokenizers, (source, target), strict=True)
        ]
        languages = self.tokenizers.languages
        marks = () if languages is None else languages.ids.values()
        marks = tuple(self.source_tokenizer.pieces(list(marks)))
        return Alignment(*pieces, weights[: len(target), : len(source)], translation, marks)
