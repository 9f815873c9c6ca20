"""Prompts, which a search reads in one pass before its first step."""

import typing

import tensorflow as tf

from keras_transformer.decoding.predictor import count_before_end
from keras_transformer.tensors import Tensor


class ReadPrompts(typing.NamedTuple):
    """The beginnings of all outputs of a batch, as far as the shortest prompt reaches.

    A search continues at position `count`, as if it had computed the earlier ones step by step: a
    token of a prompt has probability 1.
    """

    count: tf.Tensor  # number of tokens that have been read, scalar
    last: tf.Tensor  # [B], the last one of each prompt; bos_id if nothing has been read
    tokens: tf.Tensor  # [B, L], the tokens that have been read, and padding
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

    count: tf.Tensor  # number of tokens to read, scalar
    tokens: tf.Tensor  # [B, L], these tokens, and padding
    through: tf.Tensor  # [B, S + 1], the inputs of the steps

    def read(self, predictor, state) -> ReadPrompts:
        """Reads the prompts in one pass.

        Args:
            predictor: A `Predictor`.
            state: The result of its `begin`.
        """
        last = tf.gather(self.through, self.count, axis=1)  # [B]
        reading = predictor.read(state, _inputs(self.through, self.count))
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
