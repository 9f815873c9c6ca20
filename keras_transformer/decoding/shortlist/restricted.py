"""Models restricted to the candidates of a shortlist, and their predictor."""

import dataclasses
import functools
from typing import Any, NoReturn

from keras_transformer.checks import check_count
from keras_transformer.decoding.constraints import (
    checked_banned,
    checked_phrases,
    checked_prefix,
    checked_starts,
    checked_terms,
)
from keras_transformer.decoding.encoder_decoder import EncoderDecoder
from keras_transformer.decoding.ensemble import joined, log_mean
from keras_transformer.decoding.predictor import NEVER, Predictor, Step, Vocabulary
from keras_transformer.decoding.shortlist.candidates import Candidates, Lists, count, sizes_of
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.models.parts import stacks_of
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Shortlisted:
    """A `Transformer`, or an ensemble of them, restricted to the candidates of each source.

    It replaces the model in every search and in `score`. The candidates of a source are the first
    tokens of the vocabulary, `pad_id`, `bos_id` and `eos_id`, the lists of its tokens, and the
    tokens of its forced prefix. If source and target share a vocabulary, its own tokens are
    candidates as well. The softmax is over the candidates alone, as in Marian; an ensemble averages
    the probabilities that its models give to the candidates.

    A search computes the logits of the candidates of all sources of its batch and masks, for each
    source, the candidates of others. So the output of a sentence does not depend on the rest of its
    batch. As the number of logits is fixed in a graph, there are a few sizes, and a batch takes the
    smallest one that holds its candidates. If they are more than three quarters of the vocabulary,
    all logits are computed. The size does not affect results.

    Args:
        model: A `Transformer`, or an `Ensemble` of `Transformer`s.
        shortlist: A `Shortlist` for the vocabularies of the model.
        sizes: Increasing numbers of logits, multiples of 8. `None`: 1024 and 4096, if they are at
            most three quarters of the vocabulary.

    Raises:
        TypeError: If `model` is neither a `Transformer` nor an ensemble of them.
        ValueError: If the shortlist does not fit the vocabularies, or `sizes` are not increasing
            multiples of 8.

    Example:
        >>> from keras_transformer import Greedy, Transformer, TransformerConfig
        >>> from keras_transformer.decoding import Shortlist
        >>> from keras_transformer.decoding import Shortlisted
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> shortlist = Shortlist.from_counts([[7, 60, 3], [8, 61, 5]], 100, first=10)
        >>> found = Greedy(max_length=5)(Shortlisted(model, shortlist), [[7, 8, 3]])
        >>> set(found.tokens.numpy().ravel().tolist()) <= {*range(10), 60, 61}
        True

    Reference: Jean et al. (2015), "On Using Very Large Target Vocabulary for Neural Machine
        Translation", section 3.3.
    """

    model: object
    shortlist: object
    sizes: tuple | None = None

    def __post_init__(self) -> None:
        for model in self.models:
            if stacks_of(model) != EncoderDecoder.stacks or not model.parts.input.counts_tokens:
                raise TypeError(
                    "`model` must be a Transformer, or an Ensemble of them. "
                    f"Received: model of type {type(model).__name__}."
                )
            rules = model.config.head.rules
            if rules.has_languages:
                raise ValueError(
                    "A shortlist is for one pair of languages: `model` must have no tokens of "
                    f"languages. Received: language_codes={rules.language_codes!r}."
                )
        sizes = [] if self.sizes is None else list(self.sizes)
        for size in sizes:
            check_count("sizes", size)
        if sizes != sorted(set(sizes)) or any(size % 8 for size in sizes):
            raise ValueError(
                f"`sizes` must be increasing multiples of 8. Received: sizes={self.sizes}."
            )
        _ = self.lists  # checks the vocabulary

    @property
    def models(self) -> tuple:
        """The models of the ensemble, or a tuple with the only model."""
        return getattr(self.model, "models", (self.model,))

    @functools.cached_property
    def lists(self) -> Lists:
        """The `Lists` of the shortlist for the models' vocabulary."""
        config, vocabulary = self.config, Vocabulary.of(self.config)
        return Lists(
            self.shortlist, vocabulary, config.tokens.vocab_size, config.head.shares_vocabulary
        )

    @property
    def config(self) -> Any:
        """Configuration of the model; for an ensemble, that of the first model."""
        return self.models[0].config

    def predictor(self, alignment: tuple[int, int | None] | None = None) -> "Restricted":
        """Returns the `Predictor` for searches, see `predictor_of`."""
        return Restricted(self, alignment)


class Restricted(Predictor):
    """Predictor of a `Shortlisted`; see `EncoderDecoder` for `alignment`."""

    def __init__(self, shortlisted, alignment=None):
        self._models, self._alignment = shortlisted.models, alignment
        self._lists, self._sizes = shortlisted.lists, shortlisted.sizes
        self._members = [EncoderDecoder(model, alignment) for model in self._models]
        whole = joined(self._members)
        super().__init__(whole.vocabulary, whole.max_length)
        self.grows, self.sizes, self.lengths = whole.grows, whole.sizes, whole.lengths
        self.beginning_lengths = whole.beginning_lengths
        self.log_sum_exp = whole.log_sum_exp

    def searched(self, search, inputs, constraints=None) -> Any:  # noqa: D102
        source = tf.convert_to_tensor(inputs, tf.int32)
        prefix = _demanded(constraints, self.vocabulary)
        allowed = self._lists.allowed(source, prefix)  # [B, V]
        most = self._lists.most(source.shape, 0 if prefix is None else prefix.shape[1])
        placed = self._lists.placed(allowed, prefix)  # [V]
        needed = count(placed)

        def among(size, *larger):
            if larger:
                return tf.cond(needed <= size, lambda: among(size), lambda: among(*larger))
            return self._search(search, allowed, placed, constraints, size)

        return among(*sizes_of(self._lists, most, self._sizes))

    def _search(self, search, allowed, placed, constraints, size):
        """Returns the result of a search over `size` candidates, with the model's token ids."""
        if size >= self.vocabulary.size:
            masked = [Masked(member, self.vocabulary, allowed) for member in self._members]
            return search(joined(masked), constraints)
        candidates = Candidates.of(allowed, placed, self._lists, size)
        predictor = joined([self._among(model, candidates) for model in self._models])
        result = search(predictor, _renumbered(constraints, candidates, self.vocabulary))
        return {**result, "tokens": tf.gather(candidates.ids, result["tokens"])}

    def _among(self, model, candidates):
        """Returns the predictor of one of the models over the candidates alone."""
        output = model.output_weights.of_tokens(candidates.ids)
        predictor = EncoderDecoder(model, self._alignment, output)
        return Masked(predictor, candidates.vocabulary, candidates.allowed, candidates.ids)

    def logits(self, inputs, tokens) -> Tensor:  # noqa: D102
        source = tf.convert_to_tensor(inputs, tf.int32)
        allowed = tf.expand_dims(self._lists.allowed(source), 1)  # [B, 1, V]
        logits = [
            tf.where(allowed, member.logits(source, tokens), NEVER)  # [B, T, V]
            for member in self._members
        ]
        return logits[0] if len(logits) == 1 else log_mean(logits)

    def begin(self, inputs, length, width=1) -> NoReturn:  # noqa: D102
        self._refuse()

    def step(self, tokens, state, index) -> NoReturn:  # noqa: D102
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "A `Shortlisted` cannot be part of another predictor, such as an `Ensemble`. For an "
            "ensemble with a shortlist pass the `Ensemble` to `Shortlisted`."
        )


class Masked(Predictor):
    """Predictor that masks the tokens that are not allowed for a sentence.

    Args:
        predictor: The predictor, which takes token ids and returns C logits.
        vocabulary: The `Vocabulary` of the C tokens.
        allowed: Mask of the tokens allowed for each sentence, boolean `[B, C]`.
        ids: Token ids of the C tokens, int32 `[C]`. `None`: 0 to C - 1.
    """

    def __init__(self, predictor, vocabulary, allowed, ids=None):
        super().__init__(vocabulary, predictor.max_length)
        self._predictor, self._ids = predictor, ids
        self.grows, self.log_sum_exp = predictor.grows, predictor.log_sum_exp
        self.compacts = predictor.compacts
        self.lengths, self.beginning_lengths = predictor.lengths, predictor.beginning_lengths
        # Added instead of selected with `tf.where`: LiteRT's select is a loop over elements.
        self._mask = tf.expand_dims(tf.where(allowed, 0.0, NEVER), 1)  # [B, 1, C]

    def sizes(self, inputs) -> tuple[Tensor, Tensor | None]:  # noqa: D102
        return self._predictor.sizes(inputs)

    def begin(self, inputs, length, width=1) -> Any:  # noqa: D102
        return self._predictor.begin(inputs, length, width)

    def step(self, tokens, state, index) -> Step:  # noqa: D102
        tokens = tokens if self._ids is None else tf.gather(self._ids, tokens)
        step = self._predictor.step(tokens, state, index)
        logits = step.logits + tf.cast(self._mask, step.logits.dtype)  # [B, N, C]
        return step._replace(logits=tf.maximum(logits, NEVER))

    def extend(self, state, length) -> Any:  # noqa: D102
        return self._predictor.extend(state, length)

    def count_used(self, state) -> Tensor:  # noqa: D102
        return self._predictor.count_used(state)

    def compact(self, state, past, length, index) -> Any:  # noqa: D102
        return self._predictor.compact(state, past, length, index)

    def follow(self, state, parents) -> Any:  # noqa: D102
        return self._predictor.follow(state, parents)


def _demanded(constraints, vocabulary):
    """Returns the tokens of the prefix and of the terms, `[B, P]`, or `None` without both."""
    if constraints is None:
        return None
    tokens = []
    if constraints.prefix is not None:
        tokens.append(checked_prefix(constraints.prefix, vocabulary))
    if constraints.terms is not None:
        terms = checked_terms(constraints.terms)
        batch, *others = tf.unstack(tf.shape(terms))
        tokens.append(tf.reshape(terms, tf.stack([batch, tf.reduce_prod(others)])))
    return tf.concat(tokens, axis=1) if tokens else None


def _renumbered(constraints, candidates, vocabulary):
    """Returns the `Constraints` with tokens numbered by their indices among the candidates."""
    if constraints is None:
        return None
    changes = {}
    if constraints.prefix is not None:
        changes["prefix"] = checked_prefix(constraints.prefix, vocabulary)
    if constraints.banned_phrases is not None:
        changes["banned_phrases"] = checked_phrases(constraints.banned_phrases)
    if constraints.terms is not None:
        changes["terms"] = checked_terms(constraints.terms)
    changes = {name: tf.gather(candidates.places, ids) for name, ids in changes.items()}
    if constraints.banned is not None:
        banned = checked_banned(constraints.banned, vocabulary.size)
        changes["banned"] = tf.gather(banned, candidates.ids, axis=-1)
    if constraints.word_starts is not None:
        starts = checked_starts(constraints.word_starts, vocabulary.size)
        changes["word_starts"] = tf.gather(starts, candidates.ids)
    return constraints._replace(**changes)
