"""`Rules`, which apply `Constraints` at each step of a search."""

import numbers
import typing

from keras_transformer.decoding.constraints import (
    checked_banned,
    checked_phrases,
    checked_prefix,
    checked_starts,
    checked_terms,
)
from keras_transformer.decoding.phrases import Phrases, Terms
from keras_transformer.decoding.predictor import NEVER
from keras_transformer.decoding.prompts import Beginning
from keras_transformer.decoding.repetition import marked
from keras_transformer.decoding.timestamps import Timestamps
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

# Logit of a forced token that the model itself bans. A score is a sum that includes this logit:
# with a smaller value float32 scores could no longer differ or would look like `NEVER`.
UNLIKELY = -1e3


class Runs(typing.NamedTuple):
    """Matches of hypotheses with what constraints forbid or demand; `()` without such ones."""

    ngrams: typing.Any = ()  # [B, N, L]: number of equal tokens that end at each position
    banned: typing.Any = ()  # [B, N, P, Q], see `Phrases`
    terms: typing.Any = ()  # a `TermState`


class Rules:
    """Applies `Constraints` at each step of a search with N hypotheses for each sentence.

    Args:
        constraints: The `Constraints`.
        vocabulary: The `Vocabulary` of the predictor.
        length: Maximum length of an output L.
        beginning: The `Beginning` of the outputs. `None`: the prompt of the model.

    Raises:
        ValueError: If a constraint has the wrong shape or is negative.
    """

    def __init__(self, constraints, vocabulary, length, beginning=None):
        size, self.pad_id, bos_id, self.eos_id, *_ = vocabulary
        suppressed = {self.pad_id, bos_id, *vocabulary.rules.suppressed_ids} - {self.eos_id}
        self.words = [token not in suppressed for token in range(size)]  # [V]
        further = {*vocabulary.rules.end_ids}
        self.ends = [token in further for token in range(size)] if further else None  # [V]
        begin = {*vocabulary.rules.first_suppressed_ids}
        self.first_words = [token not in begin for token in range(size)] if begin else None  # [V]
        beginning = Beginning.of(vocabulary, None) if beginning is None else beginning
        self.begin = beginning.count  # or [B, 1]
        has_timestamps = beginning.has_timestamps is not False
        self.timestamps = Timestamps(vocabulary, beginning) if has_timestamps else None
        self.length = length
        prefix, banned, size, banned_phrases, terms, word_starts = constraints
        self.prefix = None if prefix is None else self._fit(prefix, vocabulary)  # [B, L]
        self.banned = None if banned is None else self._spread(banned)  # [V] or [B, 1, V]
        if isinstance(size, numbers.Integral) and size < 0:
            raise ValueError(
                f"`no_repeat_ngram` must be at least 0. Received: no_repeat_ngram={size}."
            )
        self.size: typing.Any = None if size is None else tf.cast(size, tf.int32)
        self.phrases: typing.Any = None
        self.terms: Terms | None = None
        if banned_phrases is not None:
            self.phrases = Phrases(checked_phrases(banned_phrases), self.pad_id)
        if terms is not None:
            starts = None if word_starts is None else checked_starts(word_starts, len(self.words))
            self.terms = Terms(checked_terms(terms), starts, self.pad_id)

    def start(self, batch, width) -> Runs:
        """Returns the `runs` before the first token.

        Args:
            batch: Number of sentences B, scalar tensor.
            width: Number of hypotheses N of each sentence, a Python integer.
        """
        ngrams = () if self.size is None else tf.zeros([batch, width, self.length], tf.int32)
        kinds = (self.phrases, self.terms)
        return Runs(ngrams, *(() if kind is None else kind.start(batch, width) for kind in kinds))

    def follow(self, runs, tokens, new, index) -> Runs:
        """Returns the runs after one more token of each hypothesis.

        Args:
            runs: From `start` or the previous `follow`, reordered with the hypotheses.
            tokens: Tokens before this position `[B, N, L]`, in the same order.
            new: Tokens at this position, `[B, N]`.
            index: Number of the position; scalar.
        """
        begun = self.begun(index)
        return Runs(
            self._follow_ngrams(runs.ngrams, tokens, new, index),
            () if self.phrases is None else self.phrases.follow(runs.banned, new, begun),
            () if self.terms is None else self.terms.follow(runs.terms, new, begun),
        )

    def begun(self, index) -> Tensor:
        """Returns whether a position comes after the prompt, boolean `[]` or `[B, 1]`."""
        return tf.convert_to_tensor(index >= self.begin)

    def _follow_ngrams(self, ngrams, tokens, new, index):
        if self.size is None:
            return ()
        same = tf.equal(tokens, tf.expand_dims(new, 2))  # [B, N, L]
        same = tf.logical_and(same, tf.range(self.length) < index)
        return tf.where(same, _before(ngrams) + 1, 0)

    def apply(self, logits, tokens, runs, index, may_end=None) -> Tensor:
        """Replaces the logits of all forbidden tokens by `NEVER`.

        Args:
            logits: `[B, N, V]`.
            tokens: Tokens before this position `[B, N, L]`.
            runs: From `start` or the previous `follow`.
            index: Number of the position; scalar.
            may_end: Boolean `[B, 1]` or `[1, 1]`: `True` if an output has its minimum length.
                `None`: all have.

        Returns:
            `[B, N, V]`; each hypothesis keeps at least one logit.
        """
        end = [token == self.eos_id for token in range(len(self.words))]  # [V]
        allowed = tf.constant(self.words)  # [V]
        if self.banned is not None:
            allowed = tf.logical_and(allowed, tf.logical_not(self.banned))  # [V] or [B, 1, V]
        if self.size is not None:
            repeated = self._repeated(tokens, runs.ngrams, index)  # [B, N, V]
            allowed = tf.logical_and(allowed, tf.logical_not(repeated))
        if self.phrases is not None:
            ending = self._ending(runs.banned)  # [B, N, V]
            allowed = tf.logical_and(allowed, tf.logical_not(ending))
        if may_end is not None:
            may = tf.logical_or(tf.expand_dims(may_end, 2), tf.logical_not(end))  # [B or 1, 1, V]
            allowed = tf.logical_and(allowed, may)
        if self.terms is not None:
            satisfied = tf.expand_dims(self.terms.satisfied(runs.terms), 2)  # [B, N, 1]
            allowed = tf.logical_and(allowed, tf.logical_or(satisfied, tf.logical_not(end)))
        if self.first_words is not None:
            begins = tf.reshape(tf.equal(index, self.begin), [-1, 1, 1])  # [B or 1, 1, 1]
            allowed = tf.logical_and(allowed, tf.logical_or(self.first_words, ~begins))
        if self.timestamps is not None:
            allowed = self.timestamps.apply(allowed, logits, tokens, index)
        if self.ends is not None:  # where `eos_id` is not allowed, no other token ends an output
            may = tf.gather(allowed, [self.eos_id], axis=-1)
            allowed = tf.logical_and(allowed, tf.logical_or(may, tf.logical_not(self.ends)))
        stuck = tf.logical_not(tf.reduce_any(allowed, axis=-1, keepdims=True))
        allowed = tf.logical_or(allowed, tf.logical_and(stuck, end))
        # A predictor may allow a single token only, as `DecoderOnly` does within the prompt.
        possible = logits > NEVER / 2  # [B, N, V]
        allowed = tf.logical_and(allowed, possible)
        stuck = tf.logical_not(tf.reduce_any(allowed, axis=-1, keepdims=True))
        allowed = tf.logical_or(allowed, tf.logical_and(stuck, possible))
        if self.prefix is not None:
            forced = tf.reshape(tf.gather(self.prefix, index, axis=1), [-1, 1, 1])  # [B, 1, 1]
            only = tf.equal(tf.range(len(self.words)), forced)  # [B, 1, V]
            free = tf.equal(forced, self.pad_id)  # [B, 1, 1]
            allowed = tf.where(free, allowed, only)
            # The model itself may ban the forced token.
            banned = tf.logical_and(tf.logical_not(free), logits <= NEVER / 2)
            logits = tf.where(tf.logical_and(only, banned), UNLIKELY, logits)
        return tf.where(allowed, logits, NEVER)

    def _repeated(self, tokens, ngrams, index):
        """Returns the mask of the tokens that would repeat an n-gram, `[B, N, V]`."""
        # A token of the output would complete an n-gram again if the n - 1 tokens before it are
        # equal to the most recent n - 1 tokens.
        completes = tf.logical_and(_before(ngrams) >= self.size - 1, self.size > 0)  # [B, N, L]
        completes = tf.logical_and(completes, tf.range(self.length) < index)
        return marked(tokens, completes, len(self.words))

    def _ending(self, matches):
        """Returns the mask of the tokens that would complete a banned phrase, `[B, N, V]`."""
        last = tf.expand_dims(self.phrases.last, 1)  # [B or 1, 1, P]
        # A shortlist has no place for some tokens: they are never emitted.
        ends = self.phrases.would_end(matches) & (last < len(self.words))  # [B, N, P]
        return marked(tf.where(ends, last, self.pad_id), ends, len(self.words))

    def _fit(self, prefix, vocabulary):
        """Returns the prefix, cut or padded to the maximum length of an output, `[B, L]`."""
        prefix = checked_prefix(prefix, vocabulary)[:, : self.length]
        missing = self.length - tf.shape(prefix)[1]
        return tf.pad(prefix, [[0, 0], [0, missing]], constant_values=self.pad_id)

    def _spread(self, banned):
        """Returns the mask of banned tokens, `[V]` for all sentences or `[B, 1, V]`."""
        banned = checked_banned(banned, len(self.words))
        return banned if banned.shape.rank == 1 else tf.expand_dims(banned, 1)


def _before(ngrams):
    """Returns the run that ends before each position, `[B, N, L]`."""
    return tf.pad(ngrams[:, :, :-1], [[0, 0], [0, 0], [1, 0]])
