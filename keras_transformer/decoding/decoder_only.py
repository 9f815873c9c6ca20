"""Predictor of a `LanguageModel`, which decodes one position at a time with a key/value cache."""

import typing
from typing import Any

from keras_transformer.decoding.entries import Entries
from keras_transformer.decoding.model_predictor import ModelPredictor
from keras_transformer.decoding.predictor import NEVER, Step, count_before_end
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class DecoderOnlyState(typing.NamedTuple):
    """The state between two steps of a `DecoderOnly`."""

    cache: tuple  # of every block, see `Stack.empty_cache`
    entries: Entries
    prompt: "tf.Tensor"  # [B, S], the inputs of `begin`


class DecoderOnly(ModelPredictor):
    """Predictor of a `LanguageModel`: every output begins with its prompt.

    The inputs are prompts, token ids `[B, S]`, integer, each ending in `eos_id` and then padding.
    While an output is shorter than its prompt, the prompt's next token has probability 1 and all
    other tokens are forbidden. The score is therefore that of the continuation alone. Prompts of a
    batch may differ in length. With an empty prompt, `eos_id` alone, the search is free from the
    first position.

    Args:
        model: A `LanguageModel`.
        alignment: Must be `None`: the model has no attention to a source.

    Raises:
        TypeError: If `model` has an encoder or no decoder.
        ValueError: If `alignment` is not `None`.
    """

    stacks = ("decoder",)
    example = "LanguageModel"
    has_source = False

    def __init__(self, model: Any, alignment: tuple[int, int | None] | None = None):
        super().__init__(model)
        if alignment is not None:
            raise ValueError(
                "`alignment` must be None with a language model, which attends to no source. "
                f"Received: alignment={alignment!r}."
            )

    def begin(self, inputs: Any, length: int, width: int = 1) -> DecoderOnlyState:  # noqa: D102
        prompt = tf.convert_to_tensor(inputs, tf.int32)
        batch = tf.shape(prompt)[0]
        cache = self.model.decoder.empty_cache(batch, length, width)
        entries = Entries.none_yet(batch, length, self.places(width))
        return DecoderOnlyState(cache, entries, prompt)

    def prompts(self, inputs: Any) -> Tensor:  # noqa: D102
        return tf.convert_to_tensor(inputs, tf.int32)

    def beginning_lengths(self, inputs: Any) -> Tensor:  # noqa: D102
        return count_before_end(tf.convert_to_tensor(inputs, tf.int32), self.vocabulary)

    def lengths(self, inputs: Any) -> Tensor:  # noqa: D102
        return tf.ones_like(self.beginning_lengths(inputs))  # the end; the output has the prompt

    def read(self, state: Any, tokens: Tensor, count: Tensor) -> Any:  # noqa: D102
        return self.model.read(tokens, count)

    def step(self, tokens: Tensor, state: Any, index: Tensor) -> Step:  # noqa: D102
        entries = state.entries.with_position(index)
        logits, cache, _ = self.model.step(
            tokens, state.cache, index, entries.attention_mask(), **entries.slots(index)
        )
        # One position of padding, which forces no token, for all steps after the longest prompt.
        prompt = tf.pad(state.prompt, [[0, 0], [0, 1]], constant_values=self.vocabulary.pad_id)
        place = tf.minimum(index, tf.shape(prompt)[1] - 1)
        forced = tf.expand_dims(tf.gather(prompt, place, axis=1), 1)  # [B, 1]
        return Step(self._follow(logits, forced), state._replace(cache=cache, entries=entries))

    def logits(self, inputs: Any, tokens: Tensor) -> Tensor:  # noqa: D102
        prompt = tf.convert_to_tensor(inputs, tf.int32)
        length = tf.shape(tokens)[1]
        missing = tf.maximum(length - tf.shape(prompt)[1], 0)
        pad_id = self.vocabulary.pad_id
        forced = tf.pad(prompt, [[0, 0], [0, missing]], constant_values=pad_id)[:, :length]
        return self._follow(self.model(tokens, training=False), forced)

    def _follow(self, logits, forced):
        """Returns the logits `[B, N, V]`, with `NEVER` for all but the prompt's token `[B, N]`."""
        vocabulary = self.vocabulary
        free = tf.equal(forced, vocabulary.pad_id) | tf.equal(forced, vocabulary.eos_id)
        only = tf.equal(tf.range(vocabulary.size), tf.expand_dims(forced, 2))  # [B, N, V]
        return tf.where(tf.expand_dims(free, 2) | only, logits, NEVER)
