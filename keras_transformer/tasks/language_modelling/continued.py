"""`Continued`: a text that grows by given tokens and by those of a search, with its cache kept."""

import copy
import functools
from collections.abc import Generator, Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.constraints import Constraints, with_rules_of
from keras_transformer.decoding.greedy import Greedy
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.prompts import Beginning
from keras_transformer.decoding.repetition import Repetition
from keras_transformer.decoding.rules import Rules
from keras_transformer.decoding.sample import Sample
from keras_transformer.decoding.search import SearchOptions, check_search
from keras_transformer.decoding.single import SingleLoop, SingleState

ROOM = 48  # positions by which the cache grows, and to which a step writes


class Continued:
    """A text of a language model that is continued again and again, as in a conversation.

    The key and value heads of all tokens are kept. A prompt that begins with the same tokens as
    the text so far is read from the first different token on, in one pass. The tokens are those of
    the search over the whole prompt, except that sums in another order may decide near ties.

    Args:
        model: A `LanguageModel` whose blocks all have self-attention.
        max_length: Maximum length of a text in tokens.

    Attributes:
        kept: Number of tokens whose heads are kept, with the one that begins a text.

    Raises:
        TypeError: If `model` is something else.
        ValueError: If the model has another mixer, or rules that follow all tokens of a text.
    """

    def __init__(self, model: Any, max_length: int):
        self._predictor: Any = predictor_of(model)
        self._model, self._length = model, max_length
        if self._predictor.moves_cache:
            raise ValueError("`model` must have self-attention in every block.")
        if self._predictor.vocabulary.rules.no_repeat_ngram:
            raise ValueError("`no_repeat_ngram` of the model must be 0 where its cache is kept.")
        # Token ids, and their heads in each block: one value, so that Ctrl-C cannot part them.
        self._kept: tuple[list[int], Any] = [], model.decoder.empty_cache(1, 0)
        self._read = tf.function(
            lambda tokens, past: model.read_more(tokens, past)[1],
            input_signature=[tf.TensorSpec([1, None], tf.int32), _grown(self._kept[1])],
            autograph=False,
        )
        self._steps = functools.cache(self._traced)

    @property
    def kept(self) -> int:
        """Number of tokens whose heads are kept."""
        return len(self._kept[0])

    def forget(self) -> None:
        """Drops all tokens and their heads."""
        self._kept = [], self._model.decoder.empty_cache(1, 0)

    def another(self) -> "Continued":
        """Returns a text without tokens, which shares the model and the graphs with this one."""
        other = copy.copy(self)
        other.forget()
        return other

    def shared(self, prompt: Sequence[int]) -> int:
        """Returns the number of tokens of a prompt that need not be read again.

        Args:
            prompt: See `generate`.
        """
        return self._common([self._predictor.vocabulary.bos_id, *prompt])

    def generate(
        self, prompt: Sequence[int], search: Greedy | Sample, number: int = 0
    ) -> Generator[int, None, None]:
        """Yields the tokens that continue a prompt, the end token included if there is one.

        The heads of the prompt and of all tokens yielded before the last one are kept, also if the
        iteration is not finished.

        Args:
            prompt: Token ids without the one that begins a text.
            search: A `Greedy` or a `Sample`.
            number: For a `Sample`, an integer of 32 bits on which the tokens depend, as on the
                index of a text in a list.

        Raises:
            TypeError: If the search is another one.
            ValueError: If the prompt leaves no position for a token.
        """
        check_search(search, Greedy, Sample)
        if len(prompt) >= self._length:
            raise ValueError(
                f"`prompt` must have at most {self._length - 1} tokens. "
                f"Received: {len(prompt)} tokens."
            )
        return self._generate(list(prompt), search, number)

    def _generate(self, prompt, search, number):
        vocabulary, inputs = self._predictor.vocabulary, [self._predictor.vocabulary.bos_id]
        inputs += prompt
        self._keep(inputs)
        begun = len(inputs) - 1  # positions that have been read; the last token goes into a step
        limit = min(search.limit(None, self._length) + len(prompt), self._length)
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
                self._kept = inputs[:count], heads

    def _keep(self, inputs):
        """Keeps the heads of all inputs but the last one, and no others."""
        common, (_, heads) = self._common(inputs), self._kept
        heads = tuple(tuple(part[:, :, :common] for part in of_block) for of_block in heads)
        if common < len(inputs) - 1:
            heads = self._read(tf.constant([inputs[common:-1]], tf.int32), heads)
        self._kept = inputs[:-1], heads

    def _common(self, inputs):
        """Returns the number of the first inputs, without the last one, that have been read."""
        ids, _ = self._kept
        pairs = enumerate(zip(ids, inputs[:-1], strict=False))
        common = min(len(ids), len(inputs) - 1)
        return next((place for place, (old, new) in pairs if old != new), common)

    def _beginning(self, prompt, search):
        """Returns the state of a search after a prompt whose last token has not been read."""
        vocabulary = self._predictor.vocabulary
        room = self._model.decoder.empty_cache(1, ROOM)
        cache = tuple((*new, *old) for new, old in zip(room, self._kept[1], strict=True))
        padding = [vocabulary.pad_id] * (self._length - len(prompt))
        loop = self._loop(search, None)
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

    def _loop(self, search, limit):
        vocabulary, inputs = self._predictor.vocabulary, tf.constant([[0]])
        constraints = Constraints() if isinstance(search, Sample) else None
        constraints = with_rules_of(vocabulary, constraints)
        beginning = Beginning.of(vocabulary, None)
        return SingleLoop(
            predictor=self._predictor,
            choose=search.chooser(self._predictor, inputs, self._length),
            length=self._length,
            limit=limit,
            rules=None
            if constraints is None
            else Rules(constraints, vocabulary, self._length, beginning),
            detects=False,
            options=SearchOptions(),
            repetition=Repetition.of(search, vocabulary),
        )

    def _traced(self, kind):
        """Returns the graph of a step for all searches of a kind."""

        def step(state, limit, *values):
            loop = self._loop(kind.with_values(values), limit)
            (state,) = loop.step(state)
            return state

        sample = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self._beginning([0], kind)
        )
        cache = tuple(
            (*of_block[:2], *_grown(of_block[2:])) for of_block in sample.predictor_state.cache
        )
        state: SingleState = sample._replace(
            predictor_state=sample.predictor_state._replace(cache=cache)
        )
        signature = [state, tf.TensorSpec([1], tf.int32), *kind.inputs]
        return tf.function(step, input_signature=signature, autograph=False)


def _grown(heads):
    """Returns the `tf.TensorSpec`s of heads of any number of positions."""
    return tf.nest.map_structure(
        lambda part: tf.TensorSpec([*part.shape[:2], None, part.shape[3]], part.dtype), heads
    )


def _joined(cache, used):
    """Returns the heads of the earlier positions and of the first `used` recent ones."""
    recent, past = cache[:2], cache[2:]
    pairs = zip(past, recent, strict=True)
    return tuple(tf.concat([old, new[:, :, :used]], axis=2) for old, new in pairs)
