"""The step of a search after a text whose first tokens have been read, for streams of tokens."""

import functools
from typing import Any

from keras_transformer.decoding.constraints import Constraints, with_rules_of
from keras_transformer.decoding.decoder_only import DecoderOnly
from keras_transformer.decoding.greedy import Greedy
from keras_transformer.decoding.predictor import Step
from keras_transformer.decoding.prompts import Beginning
from keras_transformer.decoding.repetition import Repetition
from keras_transformer.decoding.rules import Rules
from keras_transformer.decoding.sample import Sample
from keras_transformer.decoding.search import SearchOptions, inputs_of
from keras_transformer.decoding.single import SingleLoop
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


def check_predictor(predictor: Any) -> None:
    """Checks that the cache of a predictor can be kept while a text grows.

    Raises:
        ValueError: If the model has another mixer, or rules that follow all tokens of a text.
    """
    if predictor.moves_cache:
        raise ValueError("`model` must have self-attention in every block.")
    if predictor.vocabulary.rules.no_repeat_ngram:
        raise ValueError("`no_repeat_ngram` of the model must be 0 where its cache is kept.")


def loop_of(predictor: Any, search: Any, length: int, limit: Tensor | None) -> SingleLoop:
    """Returns the loop of a search of one text, whose steps are taken one by one.

    Args:
        predictor: The predictor of a language model.
        search: A `Greedy` or a `Sample`.
        length: Maximum length of a text in tokens.
        limit: Maximum length of this text, `[1]`, int32. `None`: `length`.
    """
    vocabulary, inputs = predictor.vocabulary, tf.constant([[0]])
    constraints = Constraints() if isinstance(search, Sample) else None
    constraints = with_rules_of(vocabulary, constraints)
    beginning = Beginning.of(vocabulary, None)
    return SingleLoop(
        predictor=predictor,
        choose=search.chooser(predictor, inputs, length),
        length=length,
        limit=limit,
        rules=None if constraints is None else Rules(constraints, vocabulary, length, beginning),
        detects=False,
        options=SearchOptions(),
        repetition=Repetition.of(search, vocabulary),
    )


GREEDY = -1.0  # the temperature of greedy search in a `NextToken`


@functools.cache
def control_specs() -> "tuple[tf.TensorSpec, ...]":
    """Returns the `tf.TensorSpec`s of the settings of a text."""
    return tuple(
        tf.TensorSpec([1, *spec.shape[1:]], spec.dtype, spec.name)
        for spec in inputs_of(Sample)
        if spec.name != "max_length"  # of which a text has one with its prompt
    )


class NextToken:
    """The next token of a text whose first tokens have been read, as one function.

    A program calls it again and again, with the heads that it returned, and hands over nothing
    else but the ids of the text and the settings of the search.

    Args:
        model: A `LanguageModel` whose blocks all have self-attention.
        max_length: Maximum length of a text in tokens.

    Raises:
        TypeError: If `model` is something else.
        ValueError: See `check_predictor`.
    """

    def __init__(self, model: Any, max_length: int):
        self._predictor, self._length = GivenLogits(model), max_length
        check_predictor(self._predictor)

    @property
    def nothing(self) -> list[Tensor]:
        """The heads of no token: keys and values of each block in turn, `[1, G, 0, K]`."""
        return tf.nest.flatten(self._empty())

    def __call__(
        self, text: Tensor, past: list[Tensor], limit: Tensor, controls: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Returns the next token, its log-probability, and the heads of all tokens before it.

        Args:
            text: Ids of all tokens after the one that begins a text, int32 `[1, T]`.
            past: The heads of the first P tokens, the one that begins the text included, each
                `[1, G, P, K]`; P is at most T.
            limit: Maximum length of the text, int32 `[1]`.
            controls: Tensors of the settings of a `Sample` by name, those of `control_specs`. A
                `temperature` below 0 is greedy search.

        Returns:
            Token `[1]`, int32; score `[1]`, float32; and heads `[1, G, T + 1, K]`, in the order of
            `past`.
        """
        vocabulary, model = self._predictor.vocabulary, self._predictor.model
        inputs = tf.pad(text, [[0, 0], [1, 0]], constant_values=vocabulary.bos_id)  # [1, T + 1]
        unread = inputs[:, tf.shape(past[0])[2] :]
        x, heads = model.read_more(unread, tf.nest.pack_sequence_as(self._empty(), past))
        logits = model.output_weights.project(x[:, -1:])  # [1, 1, V]
        count = tf.shape(text)[1]
        padding = [[0, 0], [0, self._length - count]]
        tokens = tf.pad(text, padding, constant_values=vocabulary.pad_id)
        tokens = tf.ensure_shape(tokens, [1, self._length])
        token, score = self._next(tokens, count, logits, limit, controls)
        return token, score, tf.nest.flatten(heads)

    def padded(
        self,
        text: Tensor,
        count: Tensor,
        past: list[Tensor],
        start: Tensor,
        limit: Tensor,
        controls: dict[str, Tensor],
        size: int,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Returns the same as a call, from tensors of fixed shapes, and new heads only.

        It reads the tokens from `start` on, up to `size` of them, and then returns the next token
        if these were all.

        Args:
            text: Ids of all tokens after the one that begins a text, and padding, int32
                `[1, max_length]`.
            count: Number of these tokens, int32 `[1]`.
            past: Heads of the first P tokens, the one that begins the text included, each
                `[1, G, P, K]`.
            start: Number of tokens that have been read, int32 `[1]`, at most P and at most `count`.
                Heads after these are ignored.
            limit, controls: See a call.
            size: Number T of positions of the heads that it returns.

        Returns:
            Token `[1]`, int32; score `[1]`, float32; and heads of the tokens from `start` on,
            `[1, G, T, K]`, of which those after `count` are not defined.
        """
        vocabulary, model = self._predictor.vocabulary, self._predictor.model
        count, start = tf.reshape(count, []), tf.reshape(start, [])
        inputs = tf.pad(text, [[0, 0], [1, 0]], constant_values=vocabulary.bos_id)
        inputs = tf.pad(inputs, [[0, 0], [0, size]], constant_values=vocabulary.pad_id)
        unread = tf.slice(inputs, [0, start], [1, size])  # [1, T]
        heads = tf.nest.pack_sequence_as(self._empty(), past)
        x, heads = model.read_more(unread, heads, start)
        last = tf.clip_by_value(count - start, 0, size - 1)
        x = tf.gather(x, tf.reshape(last, [1]), axis=1)  # [1, 1, D]
        logits = model.output_weights.project(x)  # [1, 1, V]
        token, score = self._next(text, count, logits, limit, controls)
        new = [part[:, :, -size:] for part in tf.nest.flatten(heads)]
        return token, score, new

    def _next(self, tokens, count, logits, limit, controls):
        """Returns the next token and its score.

        Args:
            tokens: Padded text `[1, max_length]`.
            count: Number of its tokens.
            logits: `[1, 1, V]`.
            limit, controls: See a call.
        """
        penalty = controls["repetition_penalty"]
        return tf.cond(
            tf.reshape(controls["temperature"], []) < 0,
            lambda: self._chosen(Greedy(repetition_penalty=penalty), tokens, count, logits, limit),
            lambda: self._chosen(Sample(**controls), tokens, count, logits, limit),
        )

    def _chosen(self, search, tokens, count, logits, limit):
        """Returns the token that a search chooses from logits `[1, 1, V]`, and its score."""
        return chosen(self._predictor, search, tokens, count, logits, limit)

    def _empty(self):
        return self._predictor.model.decoder.empty_cache(1, 0)


class GivenLogits(DecoderOnly):
    """A predictor whose state is the logits of the next token."""

    def step(self, tokens: Tensor, state: Any, index: Tensor) -> Step:  # noqa: D102
        return Step(state, state)


def chosen(
    predictor: GivenLogits,
    search: Any,
    tokens: Tensor,
    count: Tensor,
    logits: Tensor,
    limit: Tensor,
) -> tuple[Tensor, Tensor]:
    """Returns the token that a search chooses by given logits `[1]`, and its score `[1]`.

    Args:
        predictor: The predictor.
        search: A `Greedy` or a `Sample`.
        tokens: Ids of the tokens so far, after the one that begins a text, padded to the maximum
            length of a text, int32 `[1, L]`.
        count: Number of the tokens so far, a scalar.
        logits: Logits of the next token, `[1, 1, V]`.
        limit: Maximum length of the text, int32 `[1]`.
    """
    loop = loop_of(predictor, search, tokens.shape[1], limit)
    state = loop.beginning(1, None, logits)._replace(index=count, tokens=tokens)
    (state,) = loop.step(state)
    return state.last, state.scores
