"""The interface between a search and what it searches: the logits of the next token."""

import abc
import typing

import numpy as np
import tensorflow as tf

# The logit of a forbidden token: finite, so that LiteRT can compute with it.
NEVER = -1e9
OF_OUTPUTS = ("banned_ids", "silent_ids", "forced_eos_id")  # fields of a `TransformerConfig` alone


class Vocabulary(typing.NamedTuple):
    """The tokens that a predictor has logits for, and the ids with a meaning of their own."""

    size: int  # V
    pad_id: int
    bos_id: int
    eos_id: int
    banned_ids: tuple = ()  # tokens that are never emitted
    silent_ids: tuple = ()  # likewise, but with a probability
    forced_eos_id: int | None = None  # token at the last position that an output can have

    @classmethod
    def of(cls, config):
        """Returns the vocabulary of the outputs that a `ModelConfig` describes."""
        fields = {name: getattr(config, name) for name in OF_OUTPUTS if hasattr(config, name)}
        return cls(config.output_size, config.pad_id, config.bos_id, config.eos_id, **fields)

    def without_banned(self, logits):
        """Returns logits `[..., V]` with `NEVER` in the place of those of banned tokens.

        They have no probability then: that of the others is divided among these.
        """
        return self._without(self.banned_ids, logits)

    def without_silent(self, logits):
        """Returns logits `[..., V]` to choose from, with `NEVER` in the place of silent tokens."""
        return self._without(self.silent_ids, logits)

    def _without(self, ids, logits):
        if not ids:
            return logits
        which = np.zeros(self.size, bool)
        which[list(ids)] = True
        return tf.where(tf.constant(which), tf.cast(NEVER, logits.dtype), logits)

    def with_forced_end(self, logits, last):
        """Returns logits `[B, N, V]`; at the last position `forced_eos_id` has the probability 1.

        Args:
            logits: Logits of the tokens at a position.
            last: Boolean, `[]`, `[B]` or `[B, N]`, whether that is the last one that an output can
                have.
        """
        if self.forced_eos_id is None:
            return logits
        only = np.full(self.size, NEVER)  # [V]
        only[self.forced_eos_id] = 0
        last = tf.convert_to_tensor(last)
        shape = [-1, 1, 1] if last.shape.rank < 2 else [*tf.unstack(tf.shape(last)), 1]
        last = tf.reshape(last, shape)  # [B or 1, N or 1, 1]
        return tf.where(last, tf.constant(only, logits.dtype), logits)


class Step(typing.NamedTuple):
    """One position of N hypotheses of each sentence.

    Attributes:
        logits: Logits of the token that follows, `[B, N, V]`, with N and V known statically.
        state: The state with this position in it.
        weights: What the position attends to in the source, `[B, N, S]`, float32. `None` where
            the predictor has no such weights.
    """

    logits: typing.Any
    state: typing.Any
    weights: typing.Any = None


class Predictor(abc.ABC):
    """A model as a search sees it; or several models, or whatever else predicts the next token.

    A search calls `begin` once and `step` at each position, with `bos_id` at position 0. It calls
    `follow` after each step at which hypotheses may have changed places, which greedy search and
    sampling, N = 1, never do, and `extend` where the output outgrows the positions that there is
    room for. What must be remembered from one step to the next is in the state: a nest of tensors
    that only the predictor looks into. Structure and shapes stay as they are, except in `extend`,
    as a search is a loop in the graph.

    Args:
        vocabulary: A `Vocabulary`.
        max_length: Longest output, in tokens.

    Attributes:
        grows: Whether its state has room for a number of positions, so that a search has stages. A
            predictor whose state has room for any number may say no: its searches are smaller.
    """

    grows = True

    def __init__(self, vocabulary, max_length):
        self.vocabulary = vocabulary
        self.max_length = max_length

    @abc.abstractmethod
    def begin(self, inputs, length, width=1):
        """Returns the state before the first step.

        Args:
            inputs: What outputs are searched for, the first argument of a search: for example
                token ids `[B, S]`.
            length: Positions L that there must be room for, a Python integer.
            width: Hypotheses N of each sentence, a Python integer.
        """

    @abc.abstractmethod
    def step(self, tokens, state, index):
        """Returns the `Step` after one more token of each hypothesis.

        Args:
            tokens: The tokens at this position, `[B, N]`, int32.
            state: From `begin`, `follow`, `extend` or the previous step.
            index: Number of the position, counting from 0; scalar, int32.
        """

    def extend(self, state, length):
        """Returns a state with room for more positions: here the same, which has room for any.

        Args:
            state: The state after the last position that there is room for.
            length: How many more positions, a Python integer.
        """
        return state

    def follow(self, state, parents):
        """Returns a state in which hypotheses have taken the places of others.

        Here every tensor of the state is `[B, N, ...]` and is gathered.

        Args:
            state: The state after a step.
            parents: `[B, N]`, int32: hypothesis n goes on from hypothesis `parents[b, n]`.
        """
        return pick(state, parents)

    def searched(self, search, inputs, constraints=None):
        """Returns the result of a search over this predictor, or over others in its place.

        Here over this one. A predictor that has fewer tokens for some inputs puts one in its place
        that has no others.

        Args:
            search: Function of a predictor and of the `Constraints` of its outputs, or `None`, to
                what `make_result` returns.
            inputs: See `begin`.
            constraints: The `Constraints`, or `None`.
        """
        return search(self, constraints)

    def sizes(self, inputs):
        """Returns the number of sentences B, and S, over which the weights of a step are.

        Both are scalar tensors; S is `None`, as here, where the steps have no weights.

        Args:
            inputs: See `begin`.
        """
        return tf.shape(inputs)[0], None

    def lengths(self, inputs):
        """Returns the tokens of each input, `[B]`, int32, by which a search may bound outputs.

        Here `None`: the inputs have no length in tokens, and no search bounds outputs by it.

        Args:
            inputs: See `begin`.
        """
        return None

    def logits(self, inputs, tokens):
        """Returns the logits after each position of outputs that are given, `[B, T, V]`.

        Here step by step; a model that reads a whole output at once does so.

        Args:
            inputs: See `begin`.
            tokens: Token ids `[B, T]`, int32, the first one `bos_id`.
        """
        length = tf.shape(tokens)[1]
        state = self.begin(inputs, tokens.shape[1] or self.max_length)
        columns = tf.TensorArray(tf.float32, length, element_shape=[None, self.vocabulary.size])

        def advance(index, state, columns):
            step = self.step(tf.gather(tokens, [index], axis=1), state, index)
            logits = tf.cast(tf.squeeze(step.logits, 1), tf.float32)  # [B, V]
            return index + 1, step.state, columns.write(index, logits)

        beginning = (tf.constant(0), state, columns)
        *_, columns = tf.while_loop(lambda index, *_: index < length, advance, beginning)
        return tf.transpose(columns.stack(), [1, 0, 2])  # [B, T, V]

    def predictor(self, alignment=None):
        """Returns the predictor that a search runs on: here itself.

        Args:
            alignment: Layer and head whose attention is asked for, see `predictor_of`.

        Raises:
            ValueError: If there is one: the predictor has weights of its own, or none.
        """
        if alignment is not None:
            raise ValueError(
                "`alignment` must be None with a predictor, which has weights of its own or none: "
                f"`EncoderDecoder(model, alignment)`. Received: alignment={alignment!r}."
            )
        return self


def pick(values, rows):
    """Takes hypotheses `[B, M]` out of tensors `[B, N, ...]`, however they are nested."""
    return tf.nest.map_structure(lambda value: tf.gather(value, rows, batch_dims=1), values)


def count_tokens(ids, pad_id):
    """Returns the number of tokens of each row of ids `[B, S]` without its padding, `[B]`."""
    real = tf.not_equal(tf.convert_to_tensor(ids, tf.int32), pad_id)  # [B, S]
    return tf.reduce_sum(tf.cast(real, tf.int32), axis=1)  # [B]
