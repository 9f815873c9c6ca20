"""`Predictor`, the interface between searches and models: logits of the next token."""

import abc
import typing
from typing import Any

import numpy as np

from keras_transformer.checks import fields_difference
from keras_transformer.config.rules import THRESHOLDS, OutputRules
from keras_transformer.decoding.limits import limits_of
from keras_transformer.layers.kernels import log_sum_exp
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

# Logit of a forbidden token. Finite, so that LiteRT can compute with it.
NEVER = -1e9


class Vocabulary(typing.NamedTuple):
    """Output vocabulary of a predictor: its size, its special ids, and the rules for outputs."""

    size: int  # V
    pad_id: int
    bos_id: int
    eos_id: int
    rules: OutputRules = OutputRules()

    @classmethod
    def of(cls, config: Any) -> "Vocabulary":
        """Returns the output vocabulary of a `ModelConfig`."""
        ids = config.tokens.pad_id, config.tokens.bos_id, config.tokens.eos_id
        return cls(config.output_size, *ids, config.head.rules)

    def difference(self, other: "Vocabulary") -> str | None:
        """Returns a difference from another vocabulary that a search would notice, or `None`."""
        unused = dict.fromkeys((*THRESHOLDS, "language_codes"))
        ours, theirs = (
            {**one._asdict(), "rules": None, **one.rules.to_dict(), **unused}
            for one in (self, other)
        )
        return fields_difference(ours, theirs)

    def limits(self, lengths: Tensor, longest: int) -> Tensor:
        """Returns the maximum lengths of outputs by `max_length_ratio`, int32, at most `longest`.

        Args:
            lengths: Numbers of tokens of the sources, ends included, int32 of any shape.
            longest: Maximum length without the factor, a Python integer.
        """
        return limits_of(lengths, self.rules.max_length_ratio, longest)

    def without_banned(self, logits: Tensor) -> Tensor:
        """Returns logits `[..., V]` with `NEVER` for banned tokens.

        Banned tokens then have probability 0, and the others sum to 1.
        """
        return self._without(self.rules.banned_ids, logits)

    def without_suppressed(self, logits: Tensor) -> Tensor:
        """Returns logits `[..., V]` to choose a token from, with `NEVER` for suppressed tokens."""
        return self._without(self.rules.suppressed_ids, logits)

    def _without(self, ids, logits):
        if not ids:
            return logits
        which = np.zeros(self.size, bool)
        which[list(ids)] = True
        return tf.where(tf.constant(which), tf.cast(NEVER, logits.dtype), logits)

    def with_forced(
        self,
        logits: Tensor,
        first: Tensor,
        last: Tensor,
        detects: bool = False,
        banned: Tensor | None = None,
    ) -> Tensor:
        """Returns logits `[B, N, V]` that give the forced tokens probability 1 at both ends.

        Where `eos_id` is possible, the logit of the most probable end token is in its place.

        Args:
            logits: Logits of the tokens at a position.
            first: Boolean, `[]`, `[B]` or `[B, N]`: `True` if it is the first position of an
                output, where `forced_bos_id` is forced.
            last: The same for the last position that an output can have, where `forced_eos_id` is
                forced.
            detects: Whether the most probable of `language_ids` is also forced at the first
                position, where the logits allow languages.
            banned: Boolean `[V]` or `[B, 1, V]`: tokens that are not emitted, and if they are among
                `end_ids` do not end an output. `None`: none.
        """
        logits = self._with_best_end(logits, banned)
        if detects:
            logits = self._with_language(logits, _spread(first))
        return self._only(
            self.rules.forced_eos_id, self._only(self.rules.forced_bos_id, logits, first), last
        )

    def is_further_end(self, tokens: Tensor, logit: Tensor) -> Tensor:
        """Returns the mask of the tokens that are `end_ids` and end an output.

        Args:
            tokens: Token ids `[B, ...]`.
            logit: Logit of `eos_id`, which fits their shape. Where it is `NEVER`, as within a
                prompt, no token ends an output.
        """
        among = tf.reduce_any(tf.equal(tf.expand_dims(tokens, -1), [*self.rules.end_ids]), axis=-1)
        return tf.logical_and(among, logit > NEVER / 2)

    def _with_best_end(self, logits, banned):
        """Returns the logits, those of `eos_id` and of the most probable end token exchanged."""
        if not self.rules.end_ids:
            return logits
        ends = [self.eos_id, *self.rules.end_ids]
        values = tf.gather(logits, ends, axis=-1)  # [B, N, number of ends]
        possible = values
        if banned is not None:
            never = tf.cast(NEVER, values.dtype)
            possible = tf.where(tf.gather(banned, ends, axis=-1), never, values)
        own, best = values[..., :1], tf.reduce_max(possible, axis=-1, keepdims=True)
        chosen = tf.expand_dims(tf.argmax(possible, axis=-1, output_type=tf.int32), -1)
        places = tf.range(len(ends))
        swapped = tf.where(tf.equal(places, chosen), own, values)
        swapped = tf.where(tf.equal(places, 0), best, swapped)
        swapped = tf.where(own > NEVER / 2, swapped, values)
        for place, token in enumerate(ends):
            here = tf.equal(tf.range(self.size), token)
            logits = tf.where(here, swapped[..., place : place + 1], logits)
        return logits

    def _only(self, token, logits, here):
        if token is None:
            return logits
        only = np.full(self.size, NEVER)  # [V]
        only[token] = 0
        return tf.where(_spread(here), tf.constant(only, logits.dtype), logits)

    def _with_language(self, logits, first):
        languages = tf.gather(
            logits, self.rules.language_ids, axis=2
        )  # [B, N, number of languages]
        best = tf.gather(self.rules.language_ids, tf.argmax(languages, 2, tf.int32))  # [B, N]
        allowed = tf.reduce_max(languages, axis=2, keepdims=True) > NEVER / 2  # [B, N, 1]
        others = tf.not_equal(tf.range(self.size), tf.expand_dims(best, 2))  # [B, N, V]
        return tf.where(first & allowed & others, tf.cast(NEVER, logits.dtype), logits)


class Step(typing.NamedTuple):
    """Result of one step for N hypotheses of each sentence.

    Attributes:
        logits: Logits of the next token, `[B, N, V]`, with N and V known statically.
        state: The state with this position included.
        weights: Attention of the position to the source, `[B, N, S]`, float32. `None` if the
            predictor has no attention weights.
    """

    logits: typing.Any
    state: typing.Any
    weights: typing.Any = None


class Predictor(abc.ABC):
    """Next-token predictor as searches use it: a model, several models, or anything else.

    A search calls `begin` once and `step` at each position, with `bos_id` at position 0. It calls
    `follow` after each step that may have reordered the hypotheses (never in greedy search and
    sampling, where N = 1), and `extend` when the output outgrows the state. The state, a nest of
    tensors that only the predictor inspects, holds all that a later step needs. As a search is a
    loop in the graph, the structure and shapes of the state are fixed, except in `extend` and
    `compact`.

    Args:
        vocabulary: A `Vocabulary`.
        max_length: Maximum length of an output, in tokens.

    Attributes:
        log_sum_exp: Function that searches call for the denominators of probabilities, from the
            `Kernels` of a model; no method to override.
        compacts: Whether it has the methods `count_used` and `compact`, with which a beam search
            drops cache entries that no hypothesis attends to any more. Such a search may call
            `compact` in place of `extend`.
        grows: `True` if the state holds a limited number of positions, so that a search runs in
            stages. `False` if a state serves any number: graphs of searches are then smaller.
        has_source: Whether outputs are generated for a source, whose length may limit them.
    """

    log_sum_exp = staticmethod(log_sum_exp)
    compacts = False
    grows = True
    has_source = True

    def __init__(self, vocabulary: Vocabulary, max_length: int | None):
        self.vocabulary = vocabulary
        self.max_length = max_length

    @abc.abstractmethod
    def begin(self, inputs: Any, length: int, width: int = 1) -> Any:
        """Returns the state before the first step.

        Args:
            inputs: The inputs of the search, for example source token ids `[B, S]`.
            length: Number of positions L that the state must hold, a Python integer. With
                `prompts`, and a cache that grows while it is needed, a scalar tensor.
            width: Number of hypotheses N of each sentence, a Python integer.
        """

    @abc.abstractmethod
    def step(self, tokens: Tensor, state: Any, index: Tensor) -> Step:
        """Returns the `Step` after one more token of each hypothesis.

        Args:
            tokens: Tokens at this position, `[B, N]`, int32.
            state: From `begin`, `follow`, `extend` or the previous step.
            index: Number of the position, counting from 0; scalar, int32.
        """

    def prompts(self, inputs: Any) -> Tensor | None:
        """Returns the tokens that every output begins with, if they can be read in one pass.

        The default is `None`: a search computes every position by a `step`.

        Args:
            inputs: See `begin`.

        Returns:
            Token ids `[B, S]`, int32; `eos_id` or `pad_id` follows the last one of each prompt.
        """
        return None

    def beginning_lengths(self, inputs: Any) -> Tensor | int:
        """Returns the number of tokens that each output begins with, an integer or int32 `[B]`.

        The search does not choose them, so that maximum and minimum lengths do not count them. The
        default are the tokens that the vocabulary prescribes.

        Args:
            inputs: See `begin`.
        """
        return self.vocabulary.rules.beginning_length

    def no_speech(self, state: Any) -> Tensor | None:
        """Returns the probability that the inputs contain no speech, float32 `[B]`.

        It is that of the vocabulary's `no_speech_id` at position 0, before any rule or prompt. The
        default is `None`: the predictor does not know it.

        Args:
            state: From `begin`.
        """
        return None

    def read(self, state: Any, tokens: Tensor, count: Tensor) -> Any:
        """Returns what the state must hold after steps with given tokens, computed in one pass.

        A predictor needs it if `prompts` returns tokens.

        Args:
            state: From `begin`.
            tokens: Token ids `[B, T]`, int32: `bos_id` and the beginning of a prompt.
            count: Number of the next position, an int32 scalar of at most T: the tokens from there
                on are padding.

        Returns:
            A nest of tensors for `recall`.
        """
        raise NotImplementedError

    def recall(self, state: Any, reading: Any, count: Tensor, unread: Tensor) -> Any:
        """Returns the state with positions that `read` has computed.

        Args:
            state: From `begin` or `extend`; no step has used its newest positions.
            reading: From `read`.
            count: Number of positions to take from it, scalar, int32; the next step is at this
                index.
            unread: Whether no step has run yet; scalar boolean.
        """
        raise NotImplementedError

    def extend(self, state: Any, length: int) -> Any:
        """Returns a state for more positions.

        The default returns the same state, as suits a predictor whose state serves any number.

        Args:
            state: The state when all its positions are used.
            length: Number of further positions, a Python integer.
        """
        return state

    def count_used(self, state: Any) -> Tensor:
        """Returns how many cache entries the hypotheses of each sentence attend to, int32 `[B]`.

        A predictor needs it, and `compact`, if it `compacts`.

        Args:
            state: The state between two steps.
        """
        raise NotImplementedError

    def compact(self, state: Any, past: Any, length: int, index: Tensor) -> Any:
        """Returns a state without the cache entries that no hypothesis attends to any more.

        Args:
            state: The state before the step at `index`.
            past: Number of slots for the other entries, each of as many entries as there are
                hypotheses; a Python integer if the shapes must be known. Where they do not suffice,
                the latest entries are lost.
            length: Number of further positions, a Python integer.
            index: Number of the next position.
        """
        raise NotImplementedError

    def follow(self, state: Any, parents: Tensor) -> Any:
        """Returns the state with reordered hypotheses.

        The default gathers every tensor of the state, which must be `[B, N, ...]`.

        Args:
            state: The state after a step.
            parents: `[B, N]`, int32: hypothesis n continues hypothesis `parents[b, n]`.
        """
        return pick(state, parents)

    def searched(self, search: Any, inputs: Any, constraints: Any = None) -> Any:
        """Returns the result of a search over this predictor.

        A subclass may run the search over another predictor: with a shortlist, over one whose
        vocabulary is the candidates of the inputs.

        Args:
            search: Function from a predictor and the `Constraints` of its outputs, or `None`, to
                the result of `outputs_of`.
            inputs: See `begin`.
            constraints: The `Constraints`, or `None`.
        """
        return search(self, constraints)

    def sizes(self, inputs: Any) -> tuple[Tensor, Tensor | None]:
        """Returns the number of sentences B and the number of source positions S of the weights.

        Both are scalar tensors. S is `None`, as in the default, if steps have no weights.

        Args:
            inputs: See `begin`.
        """
        return tf.shape(inputs)[0], None

    def lengths(self, inputs: Any) -> Tensor | None:
        """Returns the number of tokens of each input, `[B]`, int32, for limits of output lengths.

        Tokens with which the output begins, see `beginning_lengths`, do not count. The default is
        `None`: the inputs have no length in tokens that could limit outputs.

        Args:
            inputs: See `begin`.
        """
        return None

    def logits(self, inputs: Any, tokens: Tensor) -> Tensor:
        """Returns the logits after each position of given outputs, `[B, T, V]`.

        The default computes one step after the other. A model that can read a whole output at once
        does so.

        Args:
            inputs: See `begin`.
            tokens: Token ids `[B, T]`, int32, beginning with `bos_id`.
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

    def label_log_probs(self, inputs: Any) -> tuple[Tensor, Tensor]:
        """Returns the log-probabilities of the labels of CTC at each position of the encoder.

        Args:
            inputs: See `begin`.

        Returns:
            float32 `[B, P, V]`, and which positions are not padding, boolean `[B, P]`.

        Raises:
            TypeError: If the predictor has no encoder with such labels, as in the default.
        """
        raise TypeError(
            "CTC needs a model with an encoder and a decoder, or an Ensemble of such models. "
            f"Received: {type(self).__name__}."
        )

    def predictor(self, alignment: tuple[int, int | None] | None = None) -> "Predictor":
        """Returns the predictor that a search runs on, by default this one.

        Args:
            alignment: Layer and head whose attention is requested, see `predictor_of`.

        Raises:
            ValueError: If `alignment` is not `None`: a predictor has its own weights or none.
        """
        if alignment is not None:
            raise ValueError(
                "`alignment` must be None with a predictor, which has weights of its own or none: "
                f"`EncoderDecoder(model, alignment)`. Received: alignment={alignment!r}."
            )
        return self


def _spread(here):
    """Returns a boolean `[]`, `[B]` or `[B or 1, N]` as `[B or 1, N or 1, 1]`."""
    here = tf.convert_to_tensor(here)
    shape = [-1, 1, 1] if here.shape.rank < 2 else [*tf.unstack(tf.shape(here)), 1]
    return tf.reshape(here, shape)


def pick(values, rows) -> Tensor:
    """Gathers hypotheses `[B, M]` from a nest of tensors `[B, N, ...]`."""
    return tf.nest.map_structure(lambda value: tf.gather(value, rows, batch_dims=1), values)


def count_tokens(ids, pad_id) -> Tensor:
    """Returns the number of tokens in each row of ids `[B, S]`, without padding, `[B]`."""
    real = tf.not_equal(tf.convert_to_tensor(ids, tf.int32), pad_id)  # [B, S]
    return tf.reduce_sum(tf.cast(real, tf.int32), axis=1)  # [B]


def count_before_end(prompts, vocabulary) -> Tensor:
    """Returns the number of tokens of each prompt `[B, S]` before its end or padding, `[B]`."""
    width = tf.shape(prompts)[1]
    over = tf.equal(prompts, vocabulary.pad_id) | tf.equal(prompts, vocabulary.eos_id)  # [B, S]
    places = tf.where(over, tf.range(width), width)
    return tf.minimum(tf.reduce_min(places, axis=1), width)  # also without any position
