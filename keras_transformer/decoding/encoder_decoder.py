"""Predictor of an encoder-decoder model, which decodes with a key/value cache."""

import numbers
import typing
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.ancestors import Ancestors
from keras_transformer.decoding.model_predictor import ModelPredictor
from keras_transformer.decoding.predictor import NEVER, Step, pick
from keras_transformer.tensors import Tensor

NONE = -1  # no token


class EncoderDecoderState(typing.NamedTuple):
    """The state between two steps of an `EncoderDecoder`."""

    cache: tuple  # of every block, see `Stack.empty_cache`
    ancestors: Ancestors  # unused with an SSRU decoder: its states are reordered instead
    memory_heads: tuple  # key and value heads of the memory, each [B, H, S, K]
    memory_allowed: tf.Tensor  # [B, 1, S]
    first: typing.Any = ()  # [B], first token of each output; () if the sources do not contain it


class EncoderDecoder(ModelPredictor):
    """Predictor of an encoder-decoder model, such as a `Transformer`.

    Args:
        model: An `EncoderDecoderModel`.
        alignment: A pair of integers, layer and head of the decoder: each step returns the
            attention of this head to the source as its weights. `None` in place of the head: the
            mean of all heads. `None`: the steps have no weights.
        output: Function from hidden states `[B, N, D]` to logits, see `Transformer.step`. `None`:
            the model's own logits, with the model's `banned_ids` excluded.

    Attributes:
        moves_cache: `True` if reordering hypotheses moves the content of the cache, namely the
            states of SSRUs. Keys and values do not move, see `Ancestors`.

    Raises:
        TypeError: If `model` does not have both an encoder and a decoder.
        ValueError: If the layer or the head of `alignment` does not exist.
    """

    stacks = ("encoder", "decoder")
    example = "Transformer"

    def __init__(
        self, model: Any, alignment: tuple[int, int | None] | None = None, output: Any = None
    ):
        super().__init__(model)
        check_alignment(alignment, model.config)
        self.alignment = alignment
        self.moves_cache = model.config.decoder.is_recurrent
        self.grows = not self.moves_cache
        self.output = output
        self.head, self.input = model.config.head, model.parts.input
        if self.head.has_languages and output is not None:
            raise ValueError(
                "`output` must be None for a model with `language_codes`, whose first tokens may "
                "be any."
            )

    def sizes(self, inputs: Any) -> tuple[Tensor, Tensor | None]:  # noqa: D102
        source = self._source(inputs)
        positions = None if self.alignment is None else self.input.positions(source)
        return tf.shape(source)[0], positions

    def lengths(self, inputs: Any) -> Tensor | None:  # noqa: D102
        return super().lengths(inputs) if self.input.counts_tokens else None

    def begin(self, inputs: Any, length: int, width: int = 1) -> EncoderDecoderState:  # noqa: D102
        source = self._source(inputs)
        memory, memory_allowed = self.model.encode(source)
        cache, memory_heads = self.model.start(memory, length, width)
        places = 1 if self.moves_cache else width
        ancestors = Ancestors.none_yet(tf.shape(source)[0], length, places)
        first = source[:, 0] if self.head.has_languages else ()
        return EncoderDecoderState(cache, ancestors, memory_heads, memory_allowed, first)

    def step(self, tokens: Tensor, state: Any, index: Tensor) -> Step:  # noqa: D102
        ancestors = state.ancestors.with_position(index)
        if self.head.starts_with_language:
            tokens = tf.where(tf.equal(index, 0), tf.expand_dims(state.first, 1), tokens)
        logits, cache, weights = self.model.step(
            tokens,
            state.cache,
            index,
            state.memory_heads,
            state.memory_allowed,
            ancestors.allowed(),
            self.output,
            return_weights=self.alignment is not None,
        )
        weights = None if self.alignment is None else attended(weights, self.alignment)
        state = state._replace(cache=cache, ancestors=ancestors)
        if self.output is None:
            logits = self.vocabulary.without_banned(logits)
        if self.head.forces_language:
            logits += self._forced(state.first, index, logits.dtype)
        return Step(self._prompted(logits, index), state, weights)

    def follow(self, state: Any, parents: Tensor) -> Any:  # noqa: D102
        if self.moves_cache:  # one state of fixed size for each hypothesis
            return state._replace(cache=pick(state.cache, parents))
        return super().follow(state, parents)

    def logits(self, inputs: Any, tokens: Tensor) -> Tensor:  # noqa: D102
        inputs = {"source": self._source(inputs), "target": tokens}
        logits = self.vocabulary.without_banned(self.model(inputs, training=False))  # [B, T, V]
        if self.head.forces_language:
            positions = tf.reshape(tf.range(tf.shape(tokens)[1]), [1, -1, 1])
            logits += self._forced(inputs["source"][:, 0], positions, logits.dtype)
        return self._prompted(logits, tf.range(tf.shape(tokens)[1]))

    def _source(self, inputs):
        """Returns the inputs of a search as a tensor, the source of the model."""
        return tf.convert_to_tensor(inputs, self.input.dtype)

    def _prompted(self, logits, index):
        """Returns the logits `[B, T, V]`, in which the tokens of the prompt have probability 1.

        Args:
            logits: `[B, T, V]`.
            index: Numbers of the T positions, int32 `[T]`, or one number for all of them.
        """
        prompt = self.vocabulary.prompt_ids
        if not prompt:
            return logits
        forced = tf.constant([*prompt, NONE])  # the last one forces no token
        token = tf.gather(forced, tf.minimum(index, len(prompt)))  # [T] or []
        token = tf.reshape(token, [1, -1, 1])
        others = tf.not_equal(token, NONE) & tf.not_equal(tf.range(self.vocabulary.size), token)
        return tf.where(others, tf.cast(NEVER, logits.dtype), logits)

    def _forced(self, first, index, dtype):
        """Returns what makes the probability of the token `first` 1 at position 0, `[B, T, V]`."""
        others = tf.not_equal(tf.range(self.vocabulary.size), tf.reshape(first, [-1, 1, 1]))
        return tf.cast(tf.where(others & tf.equal(index, 0), NEVER, 0.0), dtype)


def check_alignment(alignment, config) -> None:
    """Raises `ValueError` unless `alignment` is `None` or names a layer and a head of the decoder.

    Args:
        alignment: See `EncoderDecoder`.
        config: The `ModelConfig` of the model.
    """
    if alignment is None:
        return
    layers = config.decoder_layers
    is_pair = isinstance(alignment, (tuple, list)) and len(alignment) == 2
    layer, head = alignment if is_pair else (None, None)
    if not _is_index(layer, layers) or not (head is None or _is_index(head, config.num_heads)):
        raise ValueError(
            "`alignment` must be a pair of a decoder layer and a head, or None for the mean of its "
            f"heads. There are {layers} layers and {config.num_heads} heads. "
            f"Received: alignment={alignment!r}."
        )


def _is_index(number, count):
    return isinstance(number, numbers.Integral) and -count <= number < count


def attended(weights, alignment) -> Tensor:
    """Returns the attention weights of one layer and head.

    Args:
        weights: From `Transformer.step`, a tensor `[B, H, N, S]` for each layer.
        alignment: Layer and head; `None` in place of the head is the mean of all heads.

    Returns:
        `[B, N, S]`, float32.
    """
    layer, head = alignment
    chosen = tf.cast(weights[layer], tf.float32)  # [B, H, N, S]
    return tf.reduce_mean(chosen, axis=1) if head is None else chosen[:, head]
