"""The predictor of a `Transformer`: its decoder, one position at a time, with a cache."""

import typing

import tensorflow as tf

from keras_transformer.decoding.alignment import attended, check_alignment
from keras_transformer.decoding.predictor import Predictor, Step, Vocabulary
from keras_transformer.models.transformer import Transformer


class Ancestors(typing.NamedTuple):
    """Where in the cache the positions of each hypothesis are.

    No hypothesis moves in the cache: when hypotheses change places, L integers of each move
    instead of its keys and values.

    Attributes:
        places: Of position `l` of hypothesis `n` the place from 0 to N - 1 at which it was
            computed, `[B, N, L]`; -1 for a position that is not there yet. `()` for N = 1, where
            all positions are at the same place.
    """

    places: typing.Any

    @classmethod
    def none_yet(cls, batch, length, width):
        """Those of B sentences with N hypotheses of no positions, with room for L."""
        return cls(() if width == 1 else tf.fill([batch, width, length], -1))

    def with_position(self, index):
        """These and the position `index` of each hypothesis, at the hypothesis's own place."""
        if self._of_one:
            return self
        width, length = self.places.shape[1:]
        here = tf.equal(tf.range(length), index)  # [L]
        return Ancestors(tf.where(here, tf.expand_dims(tf.range(width), 1), self.places))

    def extended(self, length):
        """These with room for so many more positions."""
        if self._of_one:
            return self
        return Ancestors(tf.pad(self.places, [[0, 0], [0, 0], [0, length]], constant_values=-1))

    def allowed(self):
        """Boolean `[B, N, L * N]`, see `MultiHeadSelfAttention.step`; `None` for N = 1."""
        if self._of_one:
            return None
        width, length = self.places.shape[1:]
        allowed = tf.equal(tf.expand_dims(self.places, 3), tf.range(width))  # [B, N, L, N]
        return tf.reshape(allowed, [-1, width, length * width])

    @property
    def _of_one(self):
        return isinstance(self.places, tuple)


class State(typing.NamedTuple):
    """What the steps of an `EncoderDecoder` go on from."""

    cache: tuple  # key and value heads of every block, see `Stack.empty_cache`
    ancestors: Ancestors
    memory_heads: tuple  # key and value heads of the memory, each [B, H, S, K]
    memory_allowed: tf.Tensor  # [B, 1, S]


class EncoderDecoder(Predictor):
    """A `Transformer` as a search sees it.

    Args:
        model: A `Transformer`.
        alignment: Layer and head of the decoder, a pair of integers, whose attention to the source
            is the weights of a step. `None` in place of the head: the mean of all. `None`: the
            steps have no weights.

    Raises:
        TypeError: If `model` is no `Transformer`.
        ValueError: If there is no such layer or head.
    """

    def __init__(self, model, alignment=None):
        if not isinstance(model, Transformer):
            raise TypeError(
                "`model` must be a Transformer or a Predictor. "
                f"Received: model of type {type(model).__name__}."
            )
        config = model.config
        check_alignment(alignment, config)
        super().__init__(Vocabulary.of(config), config.max_length)
        self.model = model
        self.alignment = alignment

    def sizes(self, inputs):  # noqa: D102
        shape = tf.shape(inputs)  # [B, S]
        return shape[0], None if self.alignment is None else shape[1]

    def begin(self, inputs, length, width=1):  # noqa: D102
        source = tf.convert_to_tensor(inputs, tf.int32)
        memory, memory_allowed = self.model.encode(source)
        cache, memory_heads = self.model.start(memory, length, width)
        ancestors = Ancestors.none_yet(tf.shape(source)[0], length, width)
        return State(cache, ancestors, memory_heads, memory_allowed)

    def step(self, tokens, state, index):  # noqa: D102
        ancestors = state.ancestors.with_position(index)
        logits, cache, weights = self.model.step(
            tokens,
            state.cache,
            index,
            state.memory_heads,
            state.memory_allowed,
            ancestors.allowed(),
        )
        weights = None if self.alignment is None else attended(weights, self.alignment)
        return Step(logits, state._replace(cache=cache, ancestors=ancestors), weights)

    def extend(self, state, length):  # noqa: D102
        cache = self.model.decoder.extended_cache(state.cache, length)
        return state._replace(cache=cache, ancestors=state.ancestors.extended(length))

    def follow(self, state, parents):  # noqa: D102
        return state._replace(ancestors=super().follow(state.ancestors, parents))

    def logits(self, inputs, tokens):  # noqa: D102
        inputs = {"source": tf.convert_to_tensor(inputs, tf.int32), "target": tokens}
        return self.model(inputs, training=False)


def predictor_of(model, alignment=None):
    """Returns a predictor as it is, and the `EncoderDecoder` of a `Transformer`.

    Args:
        model: A `Predictor` or a `Transformer`.
        alignment: See `EncoderDecoder`.

    Raises:
        TypeError: If `model` is neither.
        ValueError: If a predictor is given with an alignment, or there is no such layer or head.
    """
    if not isinstance(model, Predictor):
        return EncoderDecoder(model, alignment)
    if alignment is not None:
        raise ValueError(
            "`alignment` must be None with a predictor, which has weights of its own or none: "
            f"`EncoderDecoder(model, alignment)`. Received: alignment={alignment!r}."
        )
    return model
