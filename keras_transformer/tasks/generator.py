"""Strings in, strings out: tokenizers, a model and its searches in one traceable object."""

import dataclasses
import functools

import tensorflow as tf

from keras_transformer.decoding import Beam, Ensemble, Greedy, Sample
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.decoding.predictor import Vocabulary
from keras_transformer.decoding.search import check_search
from keras_transformer.tasks.ensemble import outputs_difference
from keras_transformer.tasks.graphs import trace_search, traced_once
from keras_transformer.tasks.memory import beam_memory, check_memory
from keras_transformer.tasks.pipeline import TextPipeline
from keras_transformer.tasks.results import Generated, to_n_best
from keras_transformer.tasks.signatures import DEFAULT, IDS, TEXT, Signature
from keras_transformer.tasks.strings import (
    check_samples,
    check_sentences,
    encode,
    generate_strings,
    map_sorted,
)
from keras_transformer.tasks.token_rows import checked_ids, empty_where_wrong, right_rows

SENTENCES = tf.TensorSpec([None], tf.string, name="sentences")
SOURCE = tf.TensorSpec([None, None], tf.int32, name="source")
SMALL = 2**29  # bytes of a beam that are not compared with what is available, at no cost


class Generator(TextPipeline):
    """A trained model that generates text, with its tokenizers.

    Args:
        model, tokenizer, max_length: See `TextPipeline`.
        search: The search where none is named, a `Greedy` or a `Beam`. `None`: greedy search.

    Attributes:
        result: The class of its results.
        blank: Whether an empty input has an empty output.
        purpose: What it does, the beginning of a sentence, for the documents of an export.
        shortlist: The `Shortlist` of its searches, or `None`.
        search: The search where none is named.
    """

    result = Generated
    output = "text"
    blank = False
    purpose = "Continues texts from prompts"
    shortlist = None
    search = Greedy()
    generates = True

    def __init__(self, model, tokenizer, max_length=None, search=None):
        super().__init__(model, tokenizer, max_length)
        if search is not None:
            check_search(search, Greedy, Beam)
            self.search = search
        ensemble = Ensemble(self.models) if len(self.models) > 1 else None
        self._ensemble = lambda: ensemble  # a `tf.Module` would look through it
        self._searcher = traced_once(functools.partial(trace_search, self))

    @classmethod
    def with_files_of(cls, run, model, max_length=None):  # noqa: D102
        tokenizers = run.load_tokenizers_of(model)
        return cls(model, tokenizers, max_length, search=run.read_search())

    @classmethod
    def of_checkpoint(cls, checkpoint, max_length=None):  # noqa: D102
        return cls(checkpoint.model, checkpoint.tokenizers, max_length, search=checkpoint.search)

    def with_model(self, model):  # noqa: D102
        return type(self)(model, self.tokenizers, self.max_length, search=self.search)

    @property
    def whole(self):
        """The model, or the `Ensemble` of several, without a shortlist."""
        return self.model if self._ensemble() is None else self._ensemble()

    @property
    def searched(self):
        """The model as searches take it."""
        return self.whole

    def with_search(self, search):
        """Returns the same with another search where none is named."""
        return type(self)(self._given(), self.tokenizers, self.max_length, search=search)

    def _given(self):
        """The argument it was made with: the model, or a list of several."""
        return self.model if self._ensemble() is None else list(self.models)

    def difference(self, other):  # noqa: D102
        return super().difference(other) or outputs_difference(
            *(Vocabulary.of(one.model.config) for one in (self, other))
        )

    @property
    def greedy(self):
        """Greedy search whose outputs are no longer than those of `search` may be."""
        return Greedy(self.search.max_length)

    def search_for(self, n):
        """Returns the search for `n` outputs of each input where none is named.

        It is `search`, a beam of at least `n` hypotheses; instead of greedy search one of 4, or of
        `n` if that is more, whose outputs are no longer.
        """
        beam = self.search
        if not isinstance(beam, Beam):
            beam = Beam(4, max_length=self.search.max_length)
        return dataclasses.replace(beam, size=max(beam.size, n))

    def encode(self, sentences):
        """Returns token ids `[B, S]`, padded; see the function `encode`."""
        ids, truncated, empty = encode(self.source_tokenizer, sentences, self.max_length)
        return ids.to_tensor(self.model.config.pad_id), truncated, empty

    def check_samples(self, samples):
        """Returns the sentences to check an export with, as a list; see `check_samples`."""
        return check_samples(samples)

    def signatures(self, find=None):
        """Returns the `Signature`s: strings to texts, and token ids to token ids.

        Outputs have an axis for the M outputs of each input, `[B, M, ...]`. A string that is not
        UTF-8 gives `nothing`.

        Args:
            find: Function of token ids `[B, S]` to a `Found`. `None`: its own search.
        """
        if find is None:

            def find(source):
                return self.search(self.searched, source, cache_length=self.max_length)

        def of_text(sentences):
            outputs = self.generate(sentences, find)
            return {self.output: outputs["text"], **{k: outputs[k] for k in ("score", "truncated")}}

        def of_ids(source):
            found = find(source)
            return {"tokens": found.tokens, "score": found.scores}

        text = {"sentences": SENTENCES}
        nothing = {self.output: "", "score": NONE, "truncated": False}
        return [
            Signature(DEFAULT, TEXT, text, of_text, nothing=nothing, search=self.search),
            signature_of_ids(of_ids, self.source_tokenizer, self.max_length, self.search),
        ]

    def generate(self, sentences, find):
        """Returns what `generate_strings` does with a search in a graph.

        Args:
            sentences: `[B]`, string.
            find: Function of token ids `[B, S]` to a `Found`.
        """
        pad_id = self.source_tokenizer.pad_id
        return generate_strings(
            self.tokenizers,
            self.max_length,
            lambda ids: find(ids.to_tensor(pad_id)),
            sentences,
            self.blank,
        )

    def count_truncated(self, sentences, batch_size=1024):
        """Returns how many of a list of strings are longer than `max_length` tokens."""
        batches = range(0, len(sentences), batch_size)
        return sum(
            int(tf.math.count_nonzero(self.encode(sentences[begin : begin + batch_size])[1]))
            for begin in batches
        )

    def check(self, search, n_best=1):
        """Raises unless the settings of a search fit the model.

        Raises:
            ValueError: If they do not.
        """
        search.check(Vocabulary.of(self.model.config), self.max_length, n_best)

    def graph(self, search=Greedy(), n_best=1):
        """Returns the `tf.function` that translates a batch of sentences with a search.

        There is one for all values of the search's `inputs`. That of `Greedy`, which has none, can
        be the signature of a SavedModel as it is.

        Args:
            search: A `Greedy`, `Beam` or `Sample`.
            n_best: Translations M of each sentence.

        Returns:
            A function of `sentences`, string `[B]`, UTF-8, of which one longer than `max_length`
            tokens is cut, and of the `inputs` of the search; to a dictionary of `text`, string
            `[B, M]`; `score`, float32 `[B, M]`; and `truncated`, boolean `[B]`. An empty
            sentence stays empty.
        """
        return self._searcher(search.kind, n_best)

    def translate_batch(self, sentences, search=None):
        """Returns a `Translation` for each of a list of strings, decoded as one batch."""
        search = self.search if search is None else search
        return [best for best, *_ in self.n_best_batch(sentences, 1, search)]

    def n_best_batch(self, sentences, n, search, numbers=None):
        """Returns a list of at most `n` `Translation`s for each of a list of strings, one batch."""
        self.check(search, n)
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        self._check_memory(search, batch)
        values = search.values(range(len(sentences)) if numbers is None else numbers)
        return to_n_best(self.graph(search, n)(batch, *values), n, self.result)

    def _check_memory(self, search, batch):
        """Refuses a beam that cannot fit."""
        if not isinstance(search, Beam):
            return
        configs, count = [model.config for model in self.models], batch.shape[0]
        whole = (beam_memory(config, count, search.size, self.max_length) for config in configs)
        if sum(whole) >= SMALL:
            check_memory(configs, count, search.size, self.encode(batch)[0].shape[1])

    def __call__(self, sentences, search=None, batch_size=64):
        """Returns the translations of a list of strings, in order.

        Args:
            sentences: List of strings, of any length.
            search: A `Greedy`, `Beam` or `Sample`. `None`: the attribute `search`.
            batch_size: Sentences decoded at a time; sentences of similar length go together.

        Raises:
            TypeError: If `sentences` is not a list of strings, or `search` is something else.
            ValueError: If the settings of the search do not fit the model, or a beam does not fit
                into memory.
        """
        search = self.search if search is None else search
        return [best.text for best, *_ in self.n_best(sentences, 1, search, batch_size)]

    def n_best(self, sentences, n, search=None, batch_size=64, numbers=None):
        """Returns for each of a list of strings its `n` best translations, the best first.

        Args:
            sentences: List of strings, of any length.
            n: Translations of each. There are fewer where the same text was found twice, written
                with other tokens, and one of an empty sentence, which stays empty.
            search: A `Beam` of at least `n` hypotheses; with an `n` of 1 any search. `None`: see
                `search_for`.
            batch_size: Sentences decoded at a time; it changes nothing else.
            numbers: For a `Sample`, integers of 32 bits, one for each sentence, in place of its
                place in the list.

        Returns:
            List of lists of `Translation`.

        Raises:
            TypeError: As when it is called.
            ValueError: As when it is called, or if `numbers` are not as many.
        """
        search = self.search_for(n) if search is None else search
        check_search(search, Greedy, Beam, Sample)
        sentences = check_sentences(sentences)
        numbers = range(len(sentences)) if numbers is None else list(numbers)
        if len(numbers) != len(sentences):
            raise ValueError(
                "`numbers` must be as many as `sentences`. "
                f"Received: {len(numbers)} numbers, {len(sentences)} sentences."
            )

        def translate(batch):
            numbers, texts = zip(*batch, strict=True)
            return self.n_best_batch(texts, n, search, numbers)

        numbered = list(zip(numbers, sentences, strict=True))
        return map_sorted(translate, numbered, batch_size, key=lambda pair: len(pair[1]))


def signature_of_ids(function, ids, longest=None, search=None):
    """Returns the `Signature` from token ids to token ids.

    Args:
        function: Its function, from `source`, int32 `[B, S]`, to `tokens`, `score` and perhaps
            `length` and `alignment`, all `[B, ...]`.
        ids: What has `pad_id`, `bos_id`, `eos_id` and `vocab_size`: a tokenizer or a configuration.
        longest: Most tokens of a row, where `strict` checks it.
        search: The search that generates the tokens.
    """

    def check(source):
        return {"source": checked_ids(source, ids, longest)}

    def screen(source, **settings):
        valid = right_rows(source, ids)  # [B]
        return valid, {"source": empty_where_wrong(source, valid, ids), **settings}

    nothing = {"tokens": ids.pad_id, "score": NONE, "length": 0, "alignment": 0.0}
    inputs = {"source": SOURCE}
    return Signature("tokens", IDS, inputs, function, check, screen, nothing, search=search)
