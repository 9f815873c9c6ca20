"""Constraints of outputs: forced prefixes, banned tokens and no repeated n-grams."""

import numbers
import typing

import tensorflow as tf

from keras_transformer.decoding.predictor import NEVER
from keras_transformer.decoding.prompts import Beginning
from keras_transformer.decoding.timestamps import Timestamps
from keras_transformer.tensors import Tensor

# Logit of a forced token that the model itself bans. A score is a sum that includes this logit:
# with a smaller value float32 scores could no longer differ or would look like `NEVER`.
UNLIKELY = -1e3


class Constraints(typing.NamedTuple):
    """Constraints of the outputs of a search; a field that is `None` costs no time.

    A forced token is emitted even if another constraint forbids it. If all tokens are forbidden,
    `eos_id` included, the sentence ends with `eos_id`. `pad_id` and `bos_id` are never emitted
    unless they are forced. Scores remain the model's own: probabilities are not renormalised over
    the allowed tokens.

    Args:
        prefix: Token ids `[B, P]`, integer, without `bos_id`: the beginning of each output. At
            positions with `pad_id`, after a shorter prefix or within it, the search is free. An
            `eos_id` ends the output there. A ragged tensor, such as the result of
            `Tokenizer.encode`, is padded, and an `eos_id` at the end of its rows, which `encode`
            appends, is left out.
        banned: Boolean `[V]` or `[B, V]`: tokens that are not emitted.
        no_repeat_ngram: Integer or scalar tensor n: no n-gram occurs twice in an output; forced
            tokens count. 0: off.
    """

    prefix: typing.Any = None
    banned: typing.Any = None
    no_repeat_ngram: typing.Any = None


def with_rules_of(vocabulary, constraints) -> Constraints | None:
    """Returns `Constraints` with the n-grams that a model never repeats, or `None` without any.

    They are empty if the vocabulary has other rules that depend on the position in an output.

    Args:
        vocabulary: The `Vocabulary` of the predictor.
        constraints: The `Constraints` of a search, or `None`. Its own `no_repeat_ngram` is kept.
    """
    # The tokens of a prompt may be suppressed.
    rules = vocabulary.rules
    if rules.first_suppressed_ids or rules.timestamp_id is not None or rules.prompt_ids:
        constraints = Constraints() if constraints is None else constraints
    if not rules.no_repeat_ngram:
        return constraints
    constraints = Constraints() if constraints is None else constraints
    if constraints.no_repeat_ngram is not None:
        return constraints
    return constraints._replace(no_repeat_ngram=rules.no_repeat_ngram)


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
        prefix, banned, size = constraints
        self.prefix = None if prefix is None else self._fit(prefix, vocabulary)  # [B, L]
        self.banned = None if banned is None else self._spread(banned)  # [V] or [B, 1, V]
        if isinstance(size, numbers.Integral) and size < 0:
            raise ValueError(
                f"`no_repeat_ngram` must be at least 0. Received: no_repeat_ngram={size}."
            )
        self.size: typing.Any = None if size is None else tf.cast(size, tf.int32)

    def start(self, batch, width) -> Tensor:
        """Returns the `runs` before the first token.

        Args:
            batch: Number of sentences B, scalar tensor.
            width: Number of hypotheses N of each sentence, a Python integer.
        """
        return () if self.size is None else tf.zeros([batch, width, self.length], tf.int32)

    def follow(self, runs, tokens, new, index) -> Tensor:
        """Returns the runs after one more token of each hypothesis.

        Args:
            runs: From `start` or the previous `follow`, reordered with the hypotheses,
                `[B, N, L]`: the number of tokens ending at each position that are equal to the
                most recent tokens of the output.
            tokens: Tokens before this position `[B, N, L]`, in the same order.
            new: Tokens at this position, `[B, N]`.
            index: Number of the position; scalar.
        """
        if self.size is None:
            return ()
        same = tf.equal(tokens, tf.expand_dims(new, 2))  # [B, N, L]
        same = tf.logical_and(same, tf.range(self.length) < index)
        return tf.where(same, _before(runs) + 1, 0)

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
            repeated = self._repeated(tokens, runs, index)  # [B, N, V]
            allowed = tf.logical_and(allowed, tf.logical_not(repeated))
        if may_end is not None:
            may = tf.logical_or(tf.expand_dims(may_end, 2), tf.logical_not(end))  # [B or 1, 1, V]
            allowed = tf.logical_and(allowed, may)
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

    def _repeated(self, tokens, runs, index):
        """Returns the mask of the tokens that would repeat an n-gram, `[B, N, V]`."""
        width, vocab_size = tokens.shape[1], len(self.words)
        # A token of the output would complete an n-gram again if the n - 1 tokens before it are
        # equal to the most recent n - 1 tokens.
        completes = tf.logical_and(_before(runs) >= self.size - 1, self.size > 0)  # [B, N, L]
        completes = tf.logical_and(completes, tf.range(self.length) < index)
        rows = tf.shape(tokens)[0] * width  # B * N
        first = tf.reshape(tf.range(rows) * vocab_size, [-1, width, 1])  # [B, N, 1]
        counts = tf.scatter_nd(
            tf.reshape(first + tokens, [-1, 1]),
            tf.reshape(tf.cast(completes, tf.int32), [-1]),
            [rows * vocab_size],
        )  # [B * N * V]
        return tf.reshape(counts, [-1, width, vocab_size]) > 0

    def _fit(self, prefix, vocabulary):
        """Returns the prefix, cut or padded to the maximum length of an output, `[B, L]`."""
        prefix = checked_prefix(prefix, vocabulary)[:, : self.length]
        missing = self.length - tf.shape(prefix)[1]
        return tf.pad(prefix, [[0, 0], [0, missing]], constant_values=self.pad_id)

    def _spread(self, banned):
        """Returns the mask of banned tokens, `[V]` for all sentences or `[B, 1, V]`."""
        banned = checked_banned(banned, len(self.words))
        return banned if banned.shape.rank == 1 else tf.expand_dims(banned, 1)


def checked_prefix(prefix, vocabulary) -> Tensor:
    """Returns the token ids `[B, P]` as int32, without the end tokens of ragged rows.

    Args:
        prefix: See `Constraints`.
        vocabulary: The `Vocabulary` of the predictor.

    Raises:
        ValueError: If the shape or dtype is wrong.
    """
    if isinstance(prefix, tf.RaggedTensor) and prefix.shape.rank == 2:
        ends = tf.equal(prefix[:, -1:], tf.cast(vocabulary.eos_id, prefix.dtype))  # [B, (0 or 1)]
        has_end = tf.reduce_any(ends, axis=1)  # [B]
        kept = tf.cast(prefix.row_lengths(), tf.int32) - tf.cast(has_end, tf.int32)
        prefix = prefix.to_tensor(vocabulary.pad_id)
        is_kept = tf.sequence_mask(kept, tf.shape(prefix)[1])
        prefix = tf.where(is_kept, prefix, tf.cast(vocabulary.pad_id, prefix.dtype))
    prefix = prefix if isinstance(prefix, tf.RaggedTensor) else tf.convert_to_tensor(prefix)
    if prefix.shape.rank != 2 or not prefix.dtype.is_integer:
        raise ValueError(
            "`prefix` must be token ids, integers [B, P]. "
            f"Received: shape {prefix.shape}, {prefix.dtype.name}."
        )
    return tf.cast(prefix, tf.int32)


def checked_banned(banned, vocab_size) -> Tensor:
    """Returns the mask as a tensor; raises `ValueError` unless it is boolean, `[V]` or `[B, V]`."""
    banned = tf.convert_to_tensor(banned)
    shape = banned.shape
    if banned.dtype != tf.bool or shape.rank not in (1, 2) or shape[-1] not in (None, vocab_size):
        raise ValueError(
            f"`banned` must be booleans, [V] or [B, V], with V = {vocab_size}. "
            f"Received: shape {shape}, {banned.dtype.name}."
        )
    return banned


def _before(runs):
    """Returns the run that ends before each position, `[B, N, L]`."""
    return tf.pad(runs[:, :, :-1], [[0, 0], [0, 0], [1, 0]])
