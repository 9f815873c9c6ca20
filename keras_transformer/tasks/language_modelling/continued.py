"""`Continued`, a `KeptText` of a model in memory."""

import functools
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.next_token import check_predictor, loop_of
from keras_transformer.decoding.single import SingleState
from keras_transformer.tasks.language_modelling.rows import ROOM, ContinuedRows, grown
from keras_transformer.tasks.streams.kept_text import KeptText
from keras_transformer.tasks.streams.turns import Turns


class Continued(KeptText):
    """A text of a model in memory that is continued again and again.

    Args:
        model: A `LanguageModel` whose blocks all have self-attention.
        max_length: Maximum length of a text in tokens.

    Raises:
        TypeError: If `model` is something else.
        ValueError: If the model has another mixer, or rules that follow all tokens of a text.
    """

    def __init__(self, model: Any, max_length: int):
        self._predictor: Any = predictor_of(model)
        check_predictor(self._predictor)
        self._model = model
        nothing = model.decoder.empty_cache(1, 0)
        super().__init__(self._predictor.vocabulary.bos_id, max_length, nothing)
        self._read = tf.function(
            lambda tokens, past: model.read_more(tokens, past)[1],
            input_signature=[tf.TensorSpec([1, None], tf.int32), grown(nothing)],
            autograph=False,
        )
        self._steps = functools.cache(self._traced)

    def group(self) -> Turns:  # noqa: D102
        blocks = self._model.decoder.blocks
        if not all(block.history().position.by_row for block in blocks):
            return super().group()
        return ContinuedRows(self._model, self._length)

    def read(self, inputs: list[int], most: int) -> int:
        """Reads up to `most` further tokens of a text, and drops what it does not begin with.

        Args:
            inputs: Its token ids, with the one that begins it.
            most: Maximum number of tokens to read.

        Returns:
            Number of tokens that have been read. The last one of all is never read here.
        """
        common, (_, heads) = self._common(inputs), self._kept
        heads = tuple(tuple(part[:, :, :common] for part in of_block) for of_block in heads)
        end = min(common + most, len(inputs) - 1)
        if common < end:
            heads = self._read(tf.constant([inputs[common:end]], tf.int32), heads)
        self._kept = inputs[:end], heads
        return end - common

    def lend(self) -> Any:
        """Returns the heads of all tokens, which the text no longer keeps."""
        heads = self._kept[1]
        self.forget()
        return heads

    def keep(self, inputs: list[int], heads: Any) -> None:
        """Keeps the heads of tokens, which have been computed elsewhere."""
        self._kept = inputs, heads

    def _generate(self, prompt, search, number):
        vocabulary, inputs = self._predictor.vocabulary, [self._bos_id, *prompt]
        self.read(inputs, len(inputs))
        begun = len(inputs) - 1  # positions that have been read; the last token goes into a step
        limit = self.limit(prompt, search)
        values = [tf.convert_to_tensor(value) for value in search.values([number])]
        step, state = self._steps(search.kind), self._beginning(prompt, search.kind)
        used = 0  # positions of the recent part of the cache
        try:
            while True:
                if used == ROOM:
                    state = self._extended(state)
                    used = 0
                state = step(state, tf.constant([limit]), *values)
                used += 1
                token = int(state.last[0])
                inputs.append(token)
                yield token
                if token == vocabulary.eos_id or len(inputs) - 1 >= limit:
                    return
        finally:
            count = len(inputs) - 1  # the last token has not been read
            if count > begun:
                cache = state.predictor_state.cache
                heads = tuple(_joined(of_block, used) for of_block in cache)
                self.keep(inputs[:count], heads)

    def _beginning(self, prompt, search):
        """Returns the state of a search after a prompt whose last token has not been read."""
        vocabulary = self._predictor.vocabulary
        room = self._model.decoder.empty_cache(1, ROOM)
        cache = tuple((*new, *old) for new, old in zip(room, self._kept[1], strict=True))
        padding = [vocabulary.pad_id] * (self._length - len(prompt))
        loop = loop_of(self._predictor, search, self._length, None)
        nothing = tf.constant([[vocabulary.pad_id]])  # a prompt that forces no token
        begun = self._predictor.begin(nothing, ROOM)._replace(cache=cache)
        state = loop.beginning(1, None, begun)
        return state._replace(
            index=tf.constant(len(prompt)),
            last=tf.constant([[vocabulary.bos_id, *prompt][-1]], tf.int32),
            tokens=tf.constant([[*prompt, *padding]], tf.int32),
        )

    def _extended(self, state):
        extended = self._predictor.extend(state.predictor_state, ROOM)
        return state._replace(predictor_state=extended)

    def _traced(self, kind):
        """Returns the graph of a step for all searches of a kind."""

        def step(state, limit, *values):
            search = kind.with_values(values)
            loop = loop_of(self._predictor, search, self._length, limit)
            (state,) = loop.step(state)
            return state

        sample = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self._beginning([0], kind)
        )
        cache = tuple(
            (*of_block[:2], *grown(of_block[2:])) for of_block in sample.predictor_state.cache
        )
        state: SingleState = sample._replace(
            predictor_state=sample.predictor_state._replace(cache=cache)
        )
        signature = [state, tf.TensorSpec([1], tf.int32), *kind.inputs]
        return tf.function(step, input_signature=signature, autograph=False)


def _joined(cache, used):
    """Returns the heads of the earlier positions and of the first `used` recent ones."""
    recent, past = cache[:2], cache[2:]
    pairs = zip(past, recent, strict=True)
    return tuple(tf.concat([old, new[:, :, :used]], axis=2) for old, new in pairs)
