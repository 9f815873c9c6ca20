"""The beginnings of outputs that inputs or models prescribe, such as Whisper's languages."""

import typing

import tensorflow as tf

from keras_transformer.decoding.predictor import NEVER
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
    """

    source: typing.Any
    prompt: typing.Any


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
