"""Beginnings of outputs that inputs or models prescribe, which a search reads in one pass."""

import typing

from keras_transformer.decoding.predictor import NEVER, count_before_end
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

NO_TOKEN = -1  # after the end of a prompt
DETECTED = -2  # the most probable language


class Prompted(typing.NamedTuple):
    """Inputs of a search in which every output has a prompt of its own.

    Attributes:
        source: The source of an encoder-decoder, `[B, ...]`.
        prompt: Token ids `[B, P]`, int32, with which the outputs begin after `bos_id`, instead of
            the model's `prompt_ids`. `NO_TOKEN` follows the last one of a shorter prompt. If the
            first one is `DETECTED`, it is the most probable of the model's `language_ids`, and any
            token if there are none.
        first: Token ids `[B]`, int32, with which the decoder begins in place of `bos_id`. They are
            not part of the outputs. `None`: `bos_id`.
    """

    source: typing.Any
    prompt: typing.Any
    first: typing.Any = None


class Beginning(typing.NamedTuple):
    """The prompts of all outputs of a search, which are Python numbers if all are the model's.

    Attributes:
        tokens: `[B or 1, P + 1]`, int32; the last column is `NO_TOKEN`.
        count: Number of tokens of each prompt, `[B, 1]`, or an integer.
        has_timestamps: Whether the rules of timestamps apply, boolean `[B, 1]` or `bool`.
        detects: Whether a prompt may begin with `DETECTED`.
    """

    tokens: typing.Any
    count: typing.Any
    has_timestamps: typing.Any
    detects: bool

    @classmethod
    def of(cls, vocabulary: typing.Any, inputs: typing.Any) -> "Beginning":
        """Returns the beginnings of outputs.

        Args:
            vocabulary: The `Vocabulary` of a predictor.
            inputs: See `Predictor.begin`.
        """
        has_timestamps = vocabulary.rules.timestamp_id is not None
        without = vocabulary.rules.no_timestamps_id
        if isinstance(inputs, Prompted):
            prompt = tf.convert_to_tensor(inputs.prompt, tf.int32)  # [B, P]
            count = tf.expand_dims(prompt_lengths(prompt), 1)
            if has_timestamps and without is not None:
                has_timestamps = tf.reduce_all(tf.not_equal(prompt, without), 1, True)
            tokens = tf.pad(prompt, [[0, 0], [0, 1]], constant_values=NO_TOKEN)
            return cls(tokens, count, has_timestamps, bool(vocabulary.rules.language_ids))
        ids, detects = [*vocabulary.rules.prompt_ids], vocabulary.rules.detect_language
        has_timestamps = has_timestamps and without not in ids
        tokens = tf.constant([[*([DETECTED] if detects else ids[:1]), *ids[1:], NO_TOKEN]])
        return cls(tokens, len(ids), has_timestamps, detects)

    def forced(self, logits: Tensor, index: Tensor, vocabulary: typing.Any) -> Tensor:
        """Returns the logits `[B, T, V]`, in which the tokens of the prompts have probability 1.

        Where a language is to be detected, only the languages keep their logits; a search takes the
        most probable one, see `Vocabulary.with_forced`.

        Args:
            logits: `[B, T, V]`.
            index: Numbers of the T positions, int32 `[T]`, or one number for all of them.
            vocabulary: The `Vocabulary` of the logits.
        """
        if self.tokens.shape[1] == 1:  # an empty prompt
            return logits
        place = tf.reshape(tf.minimum(index, self.tokens.shape[1] - 1), [-1])  # [T or 1]
        token = tf.expand_dims(tf.gather(self.tokens, place, axis=1), 2)  # [B or 1, T or 1, 1]
        others = (token >= 0) & tf.not_equal(tf.range(vocabulary.size), token)  # [.., .., V]
        if self.detects:
            known = {*vocabulary.rules.language_ids}
            no_language = tf.constant([number not in known for number in range(vocabulary.size)])
            others |= tf.equal(token, DETECTED) & no_language
        return tf.where(others, tf.cast(NEVER, logits.dtype), logits)


def prompt_lengths(prompt: Tensor) -> Tensor:
    """Returns the number of tokens of each prompt `[B, P]` of `Prompted`, `[B]`."""
    return tf.reduce_sum(tf.cast(tf.not_equal(prompt, NO_TOKEN), tf.int32), axis=1)


def source_of(inputs: typing.Any) -> typing.Any:
    """Returns the source in the inputs of a search."""
    return inputs.source if isinstance(inputs, Prompted) else inputs


class ReadPrompts(typing.NamedTuple):
    """The beginnings of all outputs of a batch, as far as the shortest prompt reaches.

    A search continues at position `count`, as if it had computed the earlier ones step by step: a
    token of a prompt has probability 1.
    """

    count: "tf.Tensor"  # number of tokens that have been read, scalar
    last: "tf.Tensor"  # [B], the last one of each prompt; bos_id if nothing has been read
    tokens: "tf.Tensor"  # [B, L], the tokens that have been read, and padding
    reading: typing.Any  # see `Predictor.read`

    def recall(self, predictor, state, start) -> typing.Any:
        """Returns the predictor's state with the positions that have been read.

        Args:
            predictor: The `Predictor`.
            state: Its state at the beginning of a stage of the search.
            start: Number of positions of the stages before, a Python integer.
        """
        return predictor.recall(state, self.reading, self.count, self.count >= start)


class Prompts(typing.NamedTuple):
    """The beginnings of all outputs of a batch, before they are read."""

    count: "tf.Tensor"  # number of tokens to read, scalar
    tokens: "tf.Tensor"  # [B, L], these tokens, and padding
    through: "tf.Tensor"  # [B, S + 1], the inputs of the steps

    def read(self, predictor, state) -> ReadPrompts:
        """Reads the prompts in one pass.

        Args:
            predictor: A `Predictor`.
            state: The result of its `begin`.
        """
        last = tf.gather(self.through, self.count, axis=1)  # [B]
        reading = predictor.read(state, _inputs(self.through, self.count), self.count)
        return ReadPrompts(self.count, last, self.tokens, reading)


def prompts_of(predictor, inputs, length, limit, rules) -> Prompts | None:
    """Returns the prompts that a search can read in one pass, up to the end of the shortest one.

    Args:
        predictor: A `Predictor`.
        inputs: See `Predictor.begin`.
        length: Length of the result L, a Python integer.
        limit: Maximum length of each output, `[B]` or a number.
        rules: The `Rules`, or `None`.

    Returns:
        The `Prompts`. `None` if the predictor has no prompts, or if the search has rules that
        follow every token of an output.
    """
    prompts, vocabulary = predictor.prompts(inputs), predictor.vocabulary
    follows = rules is not None and (rules.size is not None or rules.prefix is not None)
    if prompts is None or follows or vocabulary.rules.forced_bos_id is not None:
        return None
    prompts = prompts[:, : length - 1]  # the last position is never read: it may force the end
    width = tf.shape(prompts)[1]
    shortest = tf.minimum(tf.reduce_min(count_before_end(prompts, vocabulary)), width)
    count = tf.maximum(tf.minimum(shortest, tf.reduce_min(limit - 1)), 0)
    before = tf.range(width) < count  # [S]
    tokens = tf.where(before, prompts, vocabulary.pad_id)
    start = tf.fill([tf.shape(prompts)[0], 1], vocabulary.bos_id)
    through = tf.concat([start, tokens], axis=1)  # [B, S + 1]
    missing = length - tf.shape(tokens)[1]
    tokens = tf.pad(tokens, [[0, 0], [0, missing]], constant_values=vocabulary.pad_id)
    return Prompts(count, tf.ensure_shape(tokens, [None, length]), through)


def _inputs(through, count) -> Tensor:
    """Returns the tokens to read: only those before `count` unless a shape is fixed."""
    if through.shape[1] is None:
        return through[:, : tf.maximum(count, 1)]
    return through[:, : max(through.shape[1] - 1, 1)]
