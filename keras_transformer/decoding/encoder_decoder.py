"""Predictor of an encoder-decoder model, which decodes with a key/value cache."""

import numbers
import typing
from typing import Any

from keras_transformer.decoding.entries import Entries
from keras_transformer.decoding.model_predictor import ModelPredictor
from keras_transformer.decoding.predictor import NEVER, Step
from keras_transformer.decoding.prompts import Beginning, Prompted, prompt_lengths, source_of
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.never import never
from keras_transformer.tensors import Tensor


class EncoderDecoderState(typing.NamedTuple):
    """The state between two steps of an `EncoderDecoder`."""

    cache: tuple  # of every block, see `Stack.empty_cache`
    entries: Entries  # unused without self-attention: states are reordered instead
    memory_heads: tuple  # key and value heads of the memory, each [B, H, S, K]
    memory_attention_mask: "tf.Tensor"  # [B, 1, S]
    first: typing.Any = ()  # [B], first token of each output; () if the sources do not contain it
    prompt: typing.Any = ()  # [B, P], see `Prompted`; () if all outputs have the model's prompt
    start: typing.Any = ()  # [B], first input of the decoder; () if it is `bos_id`


class EncoderDecoder(ModelPredictor):
    """Predictor of an encoder-decoder model, such as a `Transformer`.

    The inputs of a search are the source, or a `Prompted` source.

    Args:
        model: An `EncoderDecoderModel`.
        alignment: A pair of integers, layer and head of the decoder: each step returns the
            attention of this head to the source as its weights. `None` in place of the head: the
            mean of all heads. `None`: the steps have no weights.
        output: Function from hidden states `[B, N, D]` to logits, see `Transformer.step`. `None`:
            the model's own logits, with the model's `banned_ids` excluded.

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
        self.output = output
        self.input = model.parts.input
        if self.vocabulary.rules.has_languages and output is not None:
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
        memory, memory_attention_mask = self.model.encode(source)
        cache, memory_heads = self.model.start(memory, length, width)
        entries = Entries.none_yet(tf.shape(source)[0], length, self.places(width))
        first = source[:, 0] if self.vocabulary.rules.has_languages else ()
        prompt = inputs.prompt if isinstance(inputs, Prompted) else ()
        start = first if self.vocabulary.rules.starts_with_language else ()
        if isinstance(inputs, Prompted) and inputs.first is not None:
            start = tf.convert_to_tensor(inputs.first, tf.int32)
        return EncoderDecoderState(
            cache, entries, memory_heads, memory_attention_mask, first, prompt, start
        )

    def prompts(self, inputs: Any) -> Tensor | None:  # noqa: D102
        beginning = Beginning.of(self.vocabulary, inputs)
        tokens = beginning.tokens[:, :-1]  # [B or 1, P]
        is_detected = beginning.detects and not isinstance(inputs, Prompted)
        # A recurrent decoder has no cache to fill, and a pass over one token saves nothing. Steps
        # also return the attention of the tokens of a prompt.
        is_short = tokens.shape[1] is not None and tokens.shape[1] < 2
        if is_detected or is_short or self.moves_cache or self.alignment is not None:
            return None
        batch = tf.shape(self._source(inputs))[0]
        tokens = tf.broadcast_to(tokens, [batch, tf.shape(tokens)[1]])
        return tf.where(tokens < 0, self.vocabulary.pad_id, tokens)

    def beginning_lengths(self, inputs: Any) -> Tensor | int:  # noqa: D102
        if isinstance(inputs, Prompted):
            return prompt_lengths(tf.convert_to_tensor(inputs.prompt, tf.int32))
        return self.vocabulary.rules.beginning_length

    def no_speech(self, state: Any) -> Tensor | None:  # noqa: D102
        token = self.vocabulary.rules.no_speech_id
        if token is None or self.output is not None:
            return None
        batch, memory = tf.shape(state.memory_attention_mask)[0], state[2:4]
        # Otherwise a converter would compute what follows from the start alone, and LiteRT's with
        # constants in place of the weights: see `StandIns`.
        start = tf.fill([batch, 1], self.vocabulary.bos_id) + never(state.memory_heads[0][0])
        cache = self.model.decoder.empty_cache(batch, 1, 1)  # of its own, for one position
        logits = self.model.step(start, cache, tf.constant(0), *memory).logits  # [B, 1, V]
        logits = tf.cast(tf.squeeze(logits, 1), tf.float32)
        return tf.exp(logits[:, token] - tf.reduce_logsumexp(logits, axis=1))

    def read(self, state: Any, tokens: Tensor, count: Tensor) -> Any:  # noqa: D102
        tokens = _started(tokens, state, tf.range(tf.shape(tokens)[1]))
        return self.model.read(tokens, state.memory_heads, state.memory_attention_mask)

    def step(self, tokens: Tensor, state: Any, index: Tensor) -> Step:  # noqa: D102
        entries = state.entries.with_position(index)
        tokens = _started(tokens, state, index)
        logits, cache, weights = self.model.step(
            tokens,
            state.cache,
            index,
            state.memory_heads,
            state.memory_attention_mask,
            entries.attention_mask(),
            self.output,
            return_attention_scores=self.alignment is not None,
            **entries.slots(index),
        )
        weights = None if self.alignment is None else attended(weights, self.alignment)
        state = state._replace(cache=cache, entries=entries)
        if self.output is None:
            logits = self.vocabulary.without_banned(logits)
        if self.vocabulary.rules.forces_language:
            logits += self._forced(state.first, index, logits.dtype)
        inputs = None if isinstance(state.prompt, tuple) else Prompted(None, state.prompt)
        beginning = Beginning.of(self.vocabulary, inputs)
        return Step(beginning.forced(logits, index, self.vocabulary), state, weights)

    def logits(self, inputs: Any, tokens: Tensor) -> Tensor:  # noqa: D102
        source, positions = self._source(inputs), tf.range(tf.shape(tokens)[1])
        logits = self.model({"source": source, "target": tokens}, training=False)  # [B, T, V]
        logits = self.vocabulary.without_banned(logits)
        if self.vocabulary.rules.forces_language:
            logits += self._forced(source[:, 0], tf.reshape(positions, [1, -1, 1]), logits.dtype)
        return Beginning.of(self.vocabulary, inputs).forced(logits, positions, self.vocabulary)

    def label_log_probs(self, inputs: Any) -> tuple[Tensor, Tensor]:  # noqa: D102
        memory, padding_mask = self.model.encode(self._source(inputs))
        logits = self.model.output_weights.project(memory)  # [B, P, V], as in training
        return tf.nn.log_softmax(tf.cast(logits, tf.float32)), padding_mask[:, 0]

    def _source(self, inputs):
        """Returns the inputs of a search as a tensor, the source of the model."""
        return tf.convert_to_tensor(source_of(inputs), self.input.dtype)

    def _forced(self, first, index, dtype):
        """Returns what makes the probability of the token `first` 1 at position 0, `[B, T, V]`."""
        others = tf.not_equal(tf.range(self.vocabulary.size), tf.reshape(first, [-1, 1, 1]))
        return tf.cast(tf.where(others & tf.equal(index, 0), NEVER, 0.0), dtype)


def _started(tokens, state, index):
    """Returns the inputs of the decoder, of which the one at position 0 may be a token of its own.

    Args:
        tokens: `[B, N]` at one position, or `[B, T]` at T positions.
        state: The `EncoderDecoderState`.
        index: Number of the position, a scalar; or numbers of the T positions.
    """
    if isinstance(state.start, tuple):
        return tokens
    return tf.where(tf.equal(index, 0), tf.expand_dims(state.start, 1), tokens)


def check_alignment(alignment, config) -> None:
    """Raises `ValueError` unless `alignment` is `None` or names a layer and a head of the decoder.

    Args:
        alignment: See `EncoderDecoder`.
        config: The `ModelConfig` of the model.
    """
    if alignment is None:
        return
    layers, heads = config.decoder_layers, config.decoder.block.memory_attention.num_heads
    if not heads:
        raise ValueError(
            "`alignment` must be None for a decoder without attention to the source, which has no "
            f"alignments. Received: alignment={alignment!r}."
        )
    is_pair = isinstance(alignment, (tuple, list)) and len(alignment) == 2
    layer, head = alignment if is_pair else (None, None)
    if not _is_index(layer, layers) or not (head is None or _is_index(head, heads)):
        raise ValueError(
            "`alignment` must be a pair of a decoder layer and a head, or None for the mean of its "
            f"heads. There are {layers} layers and {heads} heads. "
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
