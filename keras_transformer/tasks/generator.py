"""Pipelines that generate text: tokenizers, a model and its searches in one traceable object."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import keras
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding import Beam, Constraints, Ensemble, Greedy, Sample, SearchOptions
from keras_transformer.decoding.greedy import shared_settings
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.decoding.loop import output_limit
from keras_transformer.decoding.predictor import Vocabulary
from keras_transformer.decoding.search import check_search
from keras_transformer.options import LANGUAGES
from keras_transformer.tasks.answering import Progress, TextAnswering
from keras_transformer.tasks.details import PLAIN, Details
from keras_transformer.tasks.memory import SMALL, affordable_rows, beam_memory, check_memory
from keras_transformer.tasks.pipeline import TextPipeline
from keras_transformer.tasks.results import (
    COMPLETE,
    TOKEN_SCORES,
    Generated,
    pairs_of,
    to_n_best,
)
from keras_transformer.tasks.signatures import DEFAULT, IDS, TEXT, Signature
from keras_transformer.tasks.strings import (
    check_samples,
    encode,
    generate_strings,
    map_numbered,
    trace_search,
    traced_once,
)
from keras_transformer.tasks.token_rows import checked_ids, empty_where_invalid, valid_rows
from keras_transformer.tensors import Tensor
from keras_transformer.text.languages import with_front
from keras_transformer.text.tokenizers import Tokenizer

Kind = TypeVar("Kind", bound="Generator")

SENTENCES = tf.TensorSpec([None], tf.string, name="sentences")
SOURCE = tf.TensorSpec([None, None], tf.int32, name="source")


class Generator(TextAnswering, TextPipeline):
    """A trained model that generates text, with its tokenizers.

    Args:
        model, tokenizer, max_length: See `TextPipeline`.
        search: The default search, a `Greedy`, a `Beam` or a `Sample`. `None`: greedy search.

    Attributes:
        purpose: Beginning of a sentence about the model, for the documents of an export.
        participle: Beginning of a line of progress, such as `"translating"`.
        shortlist: The `Shortlist` of the searches, or `None`.
    """

    result = Generated
    output = "text"
    blank = False
    purpose = "Continues texts from prompts"
    participle = "continuing"
    shortlist = None
    search = Greedy()
    _shared = ("_searcher",)  # what pipelines that differ in their settings have in common

    def __init__(
        self,
        model: keras.Model | Sequence[keras.Model],
        tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
        max_length: int | None = None,
        search: Greedy | Beam | Sample | None = None,
    ):
        super().__init__(model, tokenizer, max_length)
        if search is not None:
            check_search(search, Greedy, Beam, Sample)
            self.search = search
        ensemble = Ensemble(self.models) if len(self.models) > 1 else None
        self._ensemble = lambda: ensemble  # hidden from `tf.Module`, which would track it
        self._searcher = traced_once(functools.partial(trace_search, self))

    @classmethod
    def with_files_of(cls: type[Kind], run: Any, model: Any, max_length: int | None = None) -> Kind:  # noqa: D102
        tokenizers = run.load_tokenizers_of(model)
        return cls(model, tokenizers, max_length, search=run.read_search())

    @classmethod
    def of_checkpoint(cls: type[Kind], checkpoint: Any, max_length: int | None = None) -> Kind:  # noqa: D102
        return cls(checkpoint.model, checkpoint.tokenizers, max_length, search=checkpoint.search)

    def with_model(self: Kind, model: Any) -> Kind:  # noqa: D102
        return type(self)(model, self.tokenizers, self.max_length, search=self.search)

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        of_sources = ("alignments", "shortlist") if self.has_source else ()
        return ("search", "sample", "n_best", "max_length", *LANGUAGES, *of_sources)

    @property
    def whole(self) -> Any:
        """The model, or the `Ensemble` of several, without a shortlist."""
        return self.model if self._ensemble() is None else self._ensemble()

    @property
    def searched(self) -> Any:
        """The predictor that the searches use."""
        return self.whole

    def with_search(self: Kind, search: Any) -> Kind:
        """Returns a pipeline that differs in its default search, with the same graphs."""
        other = type(self)(self._given(), self.tokenizers, self.max_length, search=search)
        return self._shared_with(other)

    def _shared_with(self, other):
        """Returns a pipeline after giving it what is shared by those of the same model."""
        for name in self._shared:
            setattr(other, name, getattr(self, name))
        return other

    def _given(self):
        """Returns the constructor's argument `model`: the model, or a list of several."""
        return self.model if self._ensemble() is None else list(self.models)

    def difference(self, other: TextPipeline) -> str | None:  # noqa: D102
        ours, theirs = (Vocabulary.of(one.model.config) for one in (self, other))
        return super().difference(other) or ours.difference(theirs)

    @property
    def greedy(self) -> Greedy:
        """Greedy search with the length limit and the repetition penalty of `search`."""
        return Greedy.like(self.search)

    @property
    def default_search(self) -> Greedy | Beam | Sample:
        """The search of a call that names none: `search`, unless it cannot do what is asked."""
        return self.search

    def search_for(self, n: int) -> Beam:
        """Returns the default search for `n` outputs of each input.

        If `search` is a beam search, it is widened to at least `n` hypotheses. Greedy search is
        replaced by a beam of 4 hypotheses, or `n` if that is more, with the same length limit and
        repetition penalty.
        """
        beam = self.search
        if not isinstance(beam, Beam):
            beam = Beam(4, **shared_settings(self.search))
        return dataclasses.replace(beam, size=max(beam.size, n))

    def encode(self, sentences: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns padded token ids `[B, S]`; see the function `encode`.

        The first language takes the place of a default that is missing.
        """
        tokenizer = self.tokenizers.with_any_languages().source
        ids, truncated, empty = encode(tokenizer, sentences, self.max_length)
        return ids.to_tensor(self.model.config.tokens.pad_id), truncated, empty

    def check_samples(self, samples: Sequence[str]) -> list[str]:
        """Returns the sentences to check an export with as a list; see `check_samples`."""
        return check_samples(samples)

    def signatures(self, find: Callable[[Tensor], Any] | None = None) -> list[Signature]:
        """Returns two `Signature`s: strings to texts, and token ids to token ids.

        Outputs have an axis for the M outputs of each input, `[B, M, ...]`, if those of `find` do.
        A string that is not UTF-8 returns `nothing`.

        Args:
            find: Function that takes token ids `[B, S]`, and any inputs that a format adds, and
                returns a `Found`. `None`: the default search.
        """
        if find is None:

            def find(source):
                return self.search(self.searched, source, self.options())

        def of_text(sentences):
            outputs = self.generate(sentences, find)
            others = "score", "truncated", COMPLETE
            return {self.output: outputs["text"], **{name: outputs[name] for name in others}}

        def of_ids(source, **settings):
            found = find(source, **settings)
            real = tf.not_equal(found.tokens, self.model.config.tokens.pad_id)  # [B, (M,) L]
            length = tf.reduce_sum(tf.cast(real, tf.int32), axis=-1)  # [B, (M)]
            outputs = {"tokens": found.tokens, "score": found.scores, "length": length}
            outputs[COMPLETE] = found.complete
            further = {TOKEN_SCORES: found.token_scores, "alignment": found.alignment}
            return outputs | {name: value for name, value in further.items() if value is not None}

        text = {"sentences": SENTENCES}
        nothing = {self.output: "", "score": NONE, "truncated": False, COMPLETE: True}
        return [
            Signature(DEFAULT, TEXT, text, of_text, nothing=nothing, search=self.search),
            signature_of_ids(
                of_ids, self.model.config, self.source_tokenizer, self.max_length, self.search
            ),
        ]

    @property
    def built_in(self) -> Constraints | None:
        """The `Constraints` of all outputs, whatever their inputs; `None`: there are none."""
        return None

    def options(self, **asked: Any) -> SearchOptions:
        """Returns the `SearchOptions` of searches with this model, whose cache suits its kernels.

        Args:
            **asked: Further fields of the `SearchOptions`. Without `constraints`, as in an export,
                they are `built_in`.
        """
        asked.setdefault("constraints", self.built_in)
        stages = self.model.kernels.cache_stages
        return SearchOptions(cache_length=self.max_length, cache_stages=stages, **asked)

    def generate(
        self, sentences: Tensor, find: Callable, languages: Tensor | None = None
    ) -> dict[str, Any]:
        """Generates texts by a search in a graph.

        Args:
            sentences: `[B]`, string.
            find: Function from token ids `[B, S]` to a `Found`.
            languages: Token ids of the languages in front of each source, int32 `[B, 2]`, instead
                of the default ones; a text with a code of its own keeps that. `None`: the defaults.

        Returns:
            The result of `generate_strings`, and `complete`, boolean `[B, M]`, see `Generated`.
        """
        pad_id, tokenizers = self.source_tokenizer.pad_id, self.tokenizers
        if languages is not None:
            tokenizers = tokenizers.with_any_languages()

        def with_languages(ids):
            if languages is None:
                return ids
            return with_front(ids, languages, tokenizers.languages, sentences)

        def decode(ids):
            return find(with_languages(ids).to_tensor(pad_id))

        outputs = generate_strings(tokenizers, self.max_length, decode, sentences, self.blank)
        outputs["source"] = with_languages(outputs["source"])
        nothing = tf.expand_dims(outputs["empty"], 1)  # [B, 1]
        return {**outputs, COMPLETE: nothing | outputs["found"].complete}

    def front(self, sentences: Sequence[str]) -> list[Tensor]:
        """Returns the default languages of sentences for `graph`, a list.

        It holds token ids, int32 `[B, N]`, or nothing for a model without languages.

        Raises:
            ValueError: If a language has no default, or a sentence begins with an unknown one.
        """
        languages = self.tokenizers.languages
        return [] if languages is None else [languages.fronts(sentences)]

    def count_truncated(self, sentences: Sequence[str], batch_size: int = 1024) -> int:
        """Returns the number of strings in a list that are longer than `max_length` tokens."""
        batches = range(0, len(sentences), batch_size)
        return sum(
            int(tf.math.count_nonzero(self.encode(sentences[begin : begin + batch_size])[1]))
            for begin in batches
        )

    def check(self, search: Any, n_best: int = 1) -> None:
        """Requires that the settings of a search fit the model.

        Raises:
            ValueError: If they do not fit.
        """
        search.check(Vocabulary.of(self.model.config), self.max_length, n_best)

    def limit(self, search: Any, source_length: int) -> int:
        """Returns the maximum length of the output for a source of this many tokens.

        It includes the tokens that the output begins with, such as the prompt.

        Args:
            search: The search.
            source_length: Number of tokens of the source, `eos_id` included.
        """
        return int(output_limit(search, self.model.config, source_length, self.max_length))

    def graph(
        self, search: Any = Greedy(), n_best: int = 1, details: Details = PLAIN
    ) -> Callable[..., dict[str, Tensor]]:
        """Returns the `tf.function` that generates texts for a batch of sentences.

        One function serves all values of the search's `inputs`. `Greedy()` has no inputs, so that
        its function can be used as the signature of a SavedModel.

        Args:
            search: A `Greedy`, `Beam` or `Sample`.
            n_best: Number M of outputs of each sentence.
            details: The `Details`: further inputs and outputs.

        Returns:
            A function with the arguments `sentences`, string `[B]`, UTF-8; the result of `front`,
            if the model has languages; and the `inputs` of the search. It returns a dictionary with
            `text`, string `[B, M]`; `score`, float32 `[B, M]`; `truncated`, boolean `[B]`; and
            `complete`, boolean `[B, M]`, see `Generated`. A
            sentence longer than `max_length` tokens is truncated; an empty one stays empty if
            `blank`.
        """
        return self._searcher(search.kind, n_best, details)

    @property
    def details(self) -> Details:
        """Inputs and outputs of the graphs of searches besides texts."""
        return PLAIN

    def _constraints(self, inputs, numbers):
        """Returns the values of the constraints in `details` for a batch, a list."""
        return []

    def answer_batch(self, inputs: Sequence[str], search: Any = None) -> list:
        """Returns a `result` for each string of a list, decoded as one batch."""
        search = self.default_search if search is None else search
        return [best for best, *_ in self.n_best_batch(inputs, 1, search)]

    def n_best_batch(
        self,
        inputs: Sequence[str],
        n: int,
        search: Any = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list]:
        """Returns up to `n` `result`s for each string of a list, decoded as one batch."""
        search = self.search_for(n) if search is None else search
        self.check(search, n)
        batch = tf.constant(inputs, tf.string, [len(inputs)])
        self._check_memory(search, batch)
        numbers, details = range(len(inputs)) if numbers is None else numbers, self.details
        values = [*search.values(numbers), *self._constraints(inputs, numbers)]
        outputs = self.graph(search, n, details)(batch, *self.front(inputs), *values)
        pairs = pairs_of(self.target_tokenizer) if details.token_scores else None
        return to_n_best(outputs, n, self.result, pairs)

    def _affordable(self, search, sentences):
        """Returns the number of sentences whose keys and values fit into memory at any length."""
        configs, length = [model.config for model in self.models], self.max_length
        if not self.has_source and sentences and search.limit(1, self.max_length) < length:
            longest = max(sentences, key=len)  # the longest prompt, except for a few tokens
            length = self.encode(tf.constant([longest]))[0].shape[1]
        return affordable_rows(configs, output_limit(search, configs[0], length, self.max_length))

    def _check_memory(self, search, batch):
        """Refuses a beam that does not fit into memory."""
        if not isinstance(search, Beam):
            return
        configs, count = [model.config for model in self.models], batch.shape[0]
        whole = (beam_memory(config, count, search.size, self.max_length) for config in configs)
        if sum(whole) >= SMALL:
            check_memory(configs, count, search.size, self.encode(batch)[0].shape[1])

    def answer(
        self,
        inputs: Any,
        search: Any = None,
        batch_size: int = 64,
        progress: Progress = None,
        numbers: Sequence[int] | None = None,
    ) -> Any:
        """Returns the `result` for a string, or a list of them for a list of strings.

        Args:
            inputs: A string of any length, or a list of strings.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the attribute `search`.
            batch_size: Number of sentences decoded at a time. Without a beam it is at most as many
                as fit into memory if their outputs are as long as the search allows. A batch
                contains sentences of similar length.
            progress: See `Answering.answer`.
            numbers: See `n_best`.

        Raises:
            TypeError: If `inputs` is neither a string nor a list of strings, or `search` is not a
                search.
            ValueError: If the settings of the search do not fit the model, or a beam does not fit
                into memory.
        """
        search = self.default_search if search is None else search
        rows = self.n_best(inputs, 1, search, batch_size, numbers, progress)
        return rows[0] if self.is_one(inputs) else [best for best, *_ in rows]

    def n_best(
        self,
        inputs: Any,
        n: int,
        search: Any = None,
        batch_size: int = 64,
        numbers: Sequence[int] | None = None,
        progress: Progress = None,
    ) -> list:
        """Returns the `n` best `result`s for a string, the best first, or a list of such lists.

        Args:
            inputs: A string of any length, or a list of strings.
            n: Maximum number of outputs of a sentence. There are fewer if the search finds the same
                text twice, made of different tokens, and only one for an empty sentence.
            search: A `Beam` of at least `n` hypotheses; any search if `n` is 1. `None`: see
                `search_for`.
            batch_size: Number of sentences decoded at a time; it does not change the outputs.
            numbers: For a `Sample`, one integer of 32 bits for each sentence, which replaces its
                index in the list.
            progress: See `Answering.answer`.

        Raises:
            TypeError: See `answer`.
            ValueError: See `answer`, or if the length of `numbers` is wrong.
        """
        search = self.search_for(n) if search is None else search
        check_search(search, Greedy, Beam, Sample)
        one = self.is_one(inputs)
        sentences = self.check_inputs([inputs] if one else inputs)

        def translate(texts, numbers):
            return self.n_best_batch(texts, n, search, numbers)

        check_count("batch_size", batch_size)
        if not isinstance(search, Beam):
            batch_size = min(batch_size, self._affordable(search, sentences))
        rows = map_numbered(translate, sentences, numbers, batch_size, progress)
        return rows[0] if one else rows


def signature_of_ids(function, config, tokenizer=None, longest=None, search=None) -> Signature:
    """Returns the `Signature` from token ids to token ids.

    Args:
        function: Function from `source`, int32 `[B, S]`, to a dictionary of `tokens`, `score`,
            `length`, `complete` and optionally `token_scores` and `alignment`, all `[B, ...]`.
        config: Configuration of the model, whose ids `lenient` checks.
        tokenizer: The `Tokenizer` of sources, whose rules `strict` checks.
        longest: Maximum number of tokens in a row, also checked by `strict`.
        search: The search that generates the tokens.
    """

    def check(source):
        return {"source": checked_ids(source, tokenizer, longest)}

    # A source has no token that begins outputs, unless it is also that of unknown text.
    is_text = tokenizer is not None and tokenizer.unk_id == config.tokens.bos_id

    def screen(source, **settings):
        valid = valid_rows(source, config.tokens, None if is_text else 0)  # [B]
        return valid, {"source": empty_where_invalid(source, valid, config.tokens), **settings}

    nothing = {"tokens": config.tokens.pad_id, "score": NONE, "length": 0, "alignment": 0.0}
    nothing |= {COMPLETE: True, TOKEN_SCORES: 0.0}
    inputs = {"source": SOURCE}
    return Signature("tokens", IDS, inputs, function, check, screen, nothing, search=search)
