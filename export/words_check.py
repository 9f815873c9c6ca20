"""Check of exports that take words: a few samples with words, compared with the run's own search.

A call without words takes another search in the graph than one with words, see
`WordInputs.searched`. The check without words therefore never runs the rules of the words.
"""

import dataclasses
import itertools
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import Beam, Constraints, Sample
from keras_transformer.export.agreement import Agreement, score_losses
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.parity import shortened
from keras_transformer.export.reference import Output, best_of, tokens_of
from keras_transformer.export.runtime import padded
from keras_transformer.free_memory import return_free_memory
from keras_transformer.tasks.wording import MAX_CHARACTERS, Wording, WordingTokens
from keras_transformer.text.terms import contains, words_of

FEW = 4  # samples
PREFIX_TOKENS = 2
# Maximum losses of a quantised model, in nats per token. Few samples vary more than those of the
# check without words, which limits the losses of the same weights. A wrong search loses several.
MAX_LOSS = 1.0


class WordsCheck:
    """Words for a few samples, and what the run generates with them.

    The words come from the run's outputs without words: every other output begins like that of the
    next sample, a token of the others is banned, and in a beam, outputs contain a term.

    Args:
        agreement: The `Agreement`.
        search: A `Greedy`, a `Beam` or a `Sample`, whose temperature becomes 0.
        outputs: The run's outputs for the samples: see `Agreement.expected`.

    Attributes:
        search: The search.
        texts: List of the samples.
        wording: The `Wording`.
        expected: List with a list of one `Output` for each sample.
    """

    def __init__(self, agreement: Agreement, search: Any, outputs: list):
        if isinstance(search, Sample):
            search = dataclasses.replace(search, temperature=0.0)
        self.search, self._pipeline = search, agreement.pipeline
        pairs = zip(agreement.samples, best_of(outputs), strict=True)
        pairs = {text: best for text, best in pairs if text.strip() and best.text.strip()}
        pairs = [*pairs.items()][:FEW]
        self.texts = [text for text, _ in pairs]
        limits = Limits(agreement.limits.quantize)
        self._agreement = Agreement(self._pipeline, self.texts, limits)
        self.wording, self.expected = Wording(), []
        if self.texts:
            self.wording = _chosen(self._pipeline.target_tokenizer, search, pairs)
            self.expected = self._of_run()
        return_free_memory()  # that of the search in memory

    def _of_run(self):
        """Returns the `Output`s of the run's own search, which takes the words by another path."""
        pipeline = self._pipeline
        begin = pipeline.model.config.head.rules.beginning_length
        tokens = WordingTokens(self.wording, pipeline.target_tokenizer, begin)
        values = tokens.values(self.texts, range(len(self.texts)))
        more = {"word_starts": tokens.word_starts} if self.wording.glossary else {}

        def find(source, *values):
            given = dict(zip(tokens.names, values, strict=True))
            options = pipeline.options(constraints=Constraints(**given, **more))
            return self.search(pipeline.searched, source, options)

        sources = padded(self._agreement.read_sources(), pipeline.source_tokenizer.pad_id)
        inputs: list[Any] = [tf.constant(sources, tf.int32), *values]
        # As in `Generator.graph`, shapes are unknown: a loop may change those of constants.
        signature = [tf.TensorSpec([None] * len(value.shape), tf.int32) for value in inputs]
        found = tf.function(find, input_signature=signature, autograph=False)(*inputs)
        return self._outputs(found.tokens.numpy(), found.scores.numpy())

    def _outputs(self, tokens, scores):
        """Returns the best `Output`s for token ids `[B, M, L]` and scores `[B, M]`."""
        tokenizer, best = self._pipeline.target_tokenizer, tokens[:, 0]
        texts = [text.decode("utf-8", "replace") for text in tokenizer.decode(best).numpy()]
        rows = zip(texts, scores[:, 0].tolist(), best, strict=True)
        return [
            [Output(text, score, False, tokens_of(tokenizer, ids))] for text, score, ids in rows
        ]

    def require_ids(self, loaded, what, longest=None, **options) -> None:
        """Requires the outputs of the run from a loaded export that takes token ids of words.

        Args:
            loaded: An `OpenWordIds`, with the search.
            what: Name of the export, for the error.
            longest: Largest number of tokens of a source that it reads. `None`: any.
            **options: Further arguments of its `decode`.

        Raises:
            ExportError: If the outputs differ.
        """
        fields = dataclasses.fields(self.wording)
        settings = {field.name: getattr(self.wording, field.name) for field in fields}
        loaded = loaded.with_settings(**settings)
        sources = self._agreement.read_sources() if self.texts else []
        fitting = [n for n, ids in enumerate(sources) if longest is None or len(ids) <= longest]
        if not fitting:
            return
        words = loaded.word_inputs([self.texts[number] for number in fitting], fitting)
        tokens, scores = loaded.decode([sources[n] for n in fitting], words=words, **options)
        exported = self.expected.copy()  # also of the samples that do not fit
        for number, output in zip(fitting, self._outputs(tokens, scores), strict=True):
            exported[number] = output
        self.require(exported, what)

    def require(self, exported, what) -> None:
        """Requires the outputs of the run.

        Args:
            exported: List with a list of one `Output`, with tokens, for each sample.
            what: Name of the export, for the error.

        Raises:
            ExportError: If an output differs by more than rounding; or, if the export is quantised,
                does not obey the words or is by far less probable.
        """
        comparisons = self._agreement.comparisons(self.search, self.expected, exported)
        sources = self._agreement.read_sources()
        exact = self._agreement.limits.is_exact
        for comparison, source in zip(comparisons, sources, strict=True):
            clause = self._disobeyed(comparison) or exact and self._mistake(comparison, source)
            if clause:
                ours, theirs = (
                    repr(shortened(output.text))
                    for output in (comparison.expected, comparison.exported)
                )
                raise ExportError(
                    f"{what}: with words, {shortened(comparison.sentence)!r} became {theirs}, and "
                    f"{ours} with the model in memory: {clause}. The export was not kept."
                )
        if exact:
            return
        for name, loss in score_losses(comparisons).items():
            if not loss <= MAX_LOSS:  # also true for NaN
                raise ExportError(
                    f"{what}: with words, `{name}` is {loss:.2g} nats per token, but at most "
                    f"{MAX_LOSS:g} is allowed. The export was not kept."
                )

    def _disobeyed(self, comparison):
        """Returns a clause about words that only the run's output obeys, else `None`."""
        ours, theirs = comparison.expected.text, comparison.exported.text
        (prefix,) = self.wording.prefixes([self.texts.index(comparison.sentence)])
        if ours.startswith(prefix) and not theirs.startswith(prefix):
            return f"the output does not begin with {prefix!r}"
        if self.wording.complaint(comparison.sentence, ours):
            return None
        return self.wording.complaint(comparison.sentence, theirs)

    def _mistake(self, comparison, source):
        """Returns a clause if an output differs by more than rounding, else `None`."""
        ours, theirs = comparison.expected, comparison.exported
        if ours.tokens == theirs.tokens:
            reading = comparison.read_expected
            penalty = self.search.penalty(reading.tokens)
            gap, bound = abs(ours.score - theirs.score), reading.tokens * reading.rounding / penalty
            return None if gap <= 2 * bound else f"its score is {theirs.score:.7g}"
        if not isinstance(self.search, Beam):
            return self._parting(comparison, source) or comparison.mistake()
        return comparison.mistake() or comparison.other_choice()

    def _parting(self, comparison, source):
        """Returns a clause unless both tokens where the outputs part are nearly tied.

        Rules forbid more probable tokens than these, which `Comparison.other_choice` would prefer.
        """
        pair = comparison.expected.tokens, comparison.exported.tokens
        same = itertools.takewhile(lambda two: two[0] == two[1], zip(*pair, strict=False))
        count = sum(1 for _ in same) + 1
        begins, limits = [tokens[:count] for tokens in pair], [comparison.limit] * 2
        scorer = self._agreement.scorer
        ours, theirs = scorer.read([source] * 2, begins, limits, [self.search] * 2)
        gap, bound = abs(ours.score - theirs.score), 2 * (ours.rounding + theirs.rounding)
        if gap <= bound and ours.tokens == theirs.tokens:
            return None
        return f"the scores part by {gap:.2g}; rounding explains {bound:.1g}"


def _chosen(tokenizer, search, pairs):
    """Returns the `Wording` for pairs of samples and `Output`s without words."""
    rows = tokenizer.tokenize(tf.constant([output.text for _, output in pairs])).to_list()
    prefixes = [
        _text(tokenizer, ids[:PREFIX_TOKENS]) if number % 2 == 0 else ""
        for number, ids in enumerate(rows[1:] + rows[:1])
    ]
    rows = [output.tokens or ids for (_, output), ids in zip(pairs, rows, strict=True)]
    parts = [part for ids in rows[1::2] + rows[::2] for part in _parts(tokenizer, ids)]
    banned, glossary = parts[:1], {}
    if search.takes_terms:
        terms = [part for part in reversed(parts) if not contains(part, banned[0])]
        words = [word for text, _ in pairs for word in words_of(text)[:1]]
        glossary = {word: [term] for word, term in zip(dict.fromkeys(words), terms, strict=False)}
    return Wording(glossary, banned, prefixes)


def _parts(tokenizer, ids):
    """Returns the texts of those tokens that are words and that the vocabulary can write.

    Texts whose own tokens are in the output come first: a ban of others would not change it.
    """
    inside, others = [], []
    for number in ids:
        text = _text(tokenizer, [number])
        if len(text) <= MAX_CHARACTERS and text.isprintable() and words_of(text):
            tokens = tokenizer.tokenize([text]).to_list()[0]
            places = range(len(ids) - len(tokens) + 1)
            is_inside = any([*ids[n : n + len(tokens)]] == tokens for n in places)
            if tokenizer.unk_id not in tokens:
                (inside if is_inside else others).append(text)
    return inside + others


def _text(tokenizer, ids):
    (text,) = tokenizer.decode(tf.constant([ids], tf.int32)).numpy()
    return text.decode("utf-8", "replace").strip()
