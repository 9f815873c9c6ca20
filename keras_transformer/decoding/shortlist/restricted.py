"""A model whose outputs are made of the candidates of a shortlist, as searches see it."""

import dataclasses
import functools

import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.constraints import NEVER, checked_banned, checked_prefix
from keras_transformer.decoding.encoder_decoder import EncoderDecoder
from keras_transformer.decoding.ensemble import joined, log_mean
from keras_transformer.decoding.predictor import Predictor, Vocabulary
from keras_transformer.decoding.shortlist.candidates import Candidates, Lists, count, sizes_of
from keras_transformer.models.parts import stacks_of


@dataclasses.dataclass(frozen=True, eq=False)
class Shortlisted:
    """A `Transformer`, or several, whose outputs are made of the candidates of each source.

    It takes the place of the model in every search and in `score`. Candidates of a source are the
    first pieces of the vocabulary, padding, beginning and end, the lists of its pieces, these
    themselves where source and target have one vocabulary, and the tokens of its forced prefix.
    Probabilities are among the candidates: the softmax is over them alone, as in Marian. Those of
    an ensemble are the mean of what each of its models makes of the candidates.

    A search computes the logits of the candidates of all sources of its batch, and masks those that
    are others' candidates: what a sentence becomes does not depend on the rest of its batch. The
    number of logits is fixed in each graph. There are a few sizes, of which a batch takes the
    smallest that its candidates fit in; with more candidates than three quarters of the vocabulary
    all logits are computed. The size changes no result.

    Args:
        model: A `Transformer`, or an `Ensemble` of `Transformer`s.
        shortlist: A `Shortlist` of its vocabulary.
        sizes: Increasing numbers of logits, multiples of 8. `None`: 1024 and 4096, as far as they
            are worth it.

    Raises:
        TypeError: If `model` is something else.
        ValueError: If the shortlist is another vocabulary's, or `sizes` are not as described.

    Example:
        >>> from keras_transformer import Greedy, Shortlist, Transformer, TransformerConfig
        >>> from keras_transformer.decoding import Shortlisted
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> shortlist = Shortlist.from_counts([[7, 60, 3], [8, 61, 5]], 100, first=10)
        >>> found = Greedy()(Shortlisted(model, shortlist), [[7, 8, 3]], cache_length=5)
        >>> set(found.tokens.numpy().ravel().tolist()) <= {*range(10), 60, 61}
        True

    Reference: Jean et al. (2015), "On Using Very Large Target Vocabulary for Neural Machine
        Translation", section 3.3.
    """

    model: object
    shortlist: object
    sizes: tuple | None = None

    def __post_init__(self):
        for model in self.models:
            if stacks_of(model) != EncoderDecoder.stacks:
                raise TypeError(
                    "`model` must be a Transformer, or an Ensemble of them. "
                    f"Received: model of type {type(model).__name__}."
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
    def models(self):
        """The models of an ensemble; the one model without one."""
        return getattr(self.model, "models", (self.model,))

    @functools.cached_property
    def lists(self):
        """The `Lists` of the models' vocabulary."""
        config, vocabulary = self.config, Vocabulary.of(self.config)
        return Lists(self.shortlist, vocabulary, config.vocab_size, config.shares_vocabulary)

    @property
    def config(self):
        """The one of the model; of several models that of the first."""
        return self.models[0].config

    def predictor(self, alignment=None):
        """Returns the `Predictor` of its searches, see `predictor_of`."""
        return Restricted(self, alignment)


class Restricted(Predictor):
    """The predictor of a `Shortlisted`; see `EncoderDecoder` for `alignment`."""

    def __init__(self, shortlisted, alignment=None):
        self._models, self._alignment = shortlisted.models, alignment
        self._lists, self._sizes = shortlisted.lists, shortlisted.sizes
        self._members = [EncoderDecoder(model, alignment) for model in self._models]
        whole = joined(self._members)
        super().__init__(whole.vocabulary, whole.max_length)
        self.grows, self.sizes, self.lengths = whole.grows, whole.sizes, whole.lengths

    def searched(self, search, inputs, constraints=None):  # noqa: D102
        source, prefix = tf.convert_to_tensor(inputs, tf.int32), None
        if constraints is not None and constraints.prefix is not None:
            prefix = checked_prefix(constraints.prefix)
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
        """The search over a vocabulary of that size, its tokens numbered as the model's are."""
        if size >= self.vocabulary.size:
            masked = [Masked(member, self.vocabulary, allowed) for member in self._members]
            return search(joined(masked), constraints)
        candidates = Candidates.of(allowed, placed, self._lists, size)
        predictor = joined([self._among(model, candidates) for model in self._models])
        result = search(predictor, _renumbered(constraints, candidates, self.vocabulary.size))
        if isinstance(result, dict):
            return {**result, "tokens": tf.gather(candidates.ids, result["tokens"])}
        tokens, *others = result
        return (tf.gather(candidates.ids, tokens), *others)

    def _among(self, model, candidates):
        """The predictor of one of the models over candidates alone."""
        output = model.output_weights.of_tokens(candidates.ids)
        few = EncoderDecoder(model, self._alignment, output)
        return Masked(few, candidates.vocabulary, candidates.allowed, candidates.ids)

    def logits(self, inputs, tokens):  # noqa: D102
        source = tf.convert_to_tensor(inputs, tf.int32)
        allowed = tf.expand_dims(self._lists.allowed(source), 1)  # [B, 1, V]
        logits = [
            tf.where(allowed, member.logits(source, tokens), NEVER)  # [B, T, V]
            for member in self._members
        ]
        return logits[0] if len(logits) == 1 else log_mean(logits)

    def begin(self, inputs, length, width=1):  # noqa: D102
        self._refuse()

    def step(self, tokens, state, index):  # noqa: D102
        self._refuse()

    def _refuse(self):
        raise ValueError(
            "A model with a shortlist is searched by itself: an `Ensemble` and other predictors "
            "take models without one, and `Shortlisted` takes an `Ensemble`."
        )


class Masked(Predictor):
    """A predictor of fewer tokens, or one in which each sentence has tokens of its own.

    Args:
        predictor: The predictor, which takes token ids and has C logits.
        vocabulary: The `Vocabulary` of C tokens.
        allowed: Which of these each sentence may have, boolean `[B, C]`.
        ids: Their token ids, int32 `[C]`. `None`: their numbers.
    """

    def __init__(self, predictor, vocabulary, allowed, ids=None):
        super().__init__(vocabulary, predictor.max_length)
        self._predictor, self._ids = predictor, ids
        self.grows = predictor.grows
        # Added rather than selected: LiteRT's select is a loop over elements.
        self._mask = tf.expand_dims(tf.where(allowed, 0.0, NEVER), 1)  # [B, 1, C]

    def sizes(self, inputs):  # noqa: D102
        return self._predictor.sizes(inputs)

    def begin(self, inputs, length, width=1):  # noqa: D102
        return self._predictor.begin(inputs, length, width)

    def step(self, tokens, state, index):  # noqa: D102
        tokens = tokens if self._ids is None else tf.gather(self._ids, tokens)
        step = self._predictor.step(tokens, state, index)
        logits = step.logits + tf.cast(self._mask, step.logits.dtype)  # [B, N, C]
        return step._replace(logits=tf.maximum(logits, NEVER))

    def extend(self, state, length):  # noqa: D102
        return self._predictor.extend(state, length)

    def follow(self, state, parents):  # noqa: D102
        return self._predictor.follow(state, parents)


def _renumbered(constraints, candidates, vocab_size):
    """The `Constraints` with the numbers that tokens have among the candidates."""
    if constraints is None:
        return None
    prefix, banned = constraints.prefix, constraints.banned
    if prefix is not None:
        prefix = tf.gather(candidates.places, checked_prefix(prefix))
    if banned is not None:
        banned = tf.gather(checked_banned(banned, vocab_size), candidates.ids, axis=-1)
    return constraints._replace(prefix=prefix, banned=banned)
