"""The loop of a search over output positions, with its limits and its result."""

import itertools
import numbers
import typing
from typing import Any

from keras_transformer.decoding.predictor import Vocabulary
from keras_transformer.decoding.unrolled import OneStep, Unrolled
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.search_settings import is_tensor
from keras_transformer.tensors import Tensor

# Few stages, because each is a loop of its own in the graph, which takes XLA seconds to compile.
STAGES = (16, 64, 128, 192, 384)
FIRST, GROWTH = 16, 48  # positions of a cache that grows while it is needed
EACH = "each"  # stands for one stage for each position


def stages(length, cache_stages, grows=True) -> list[int]:
    """Returns the cache size of each stage in positions; the last one is `length`.

    Args:
        length: Cache size of the last stage.
        cache_stages: Cache sizes of the stages before it. Sizes above three quarters of `length`
            are left out: the time they save is not worth a further loop in the graph.
        grows: Whether the state of the predictor grows; otherwise there is one stage.

    Raises:
        ValueError: If `cache_stages` are not positive and increasing.
    """
    ends = list(cache_stages)
    if isinstance(cache_stages, str):
        raise ValueError(
            f'`cache_stages` must be sizes, None or "{EACH}". '
            f"Received: cache_stages={cache_stages!r}."
        )
    if ends != sorted(set(ends)) or any(end < 1 for end in ends):
        raise ValueError(
            "`cache_stages` must be positive and increasing. "
            f"Received: cache_stages={cache_stages}."
        )
    return [*(end for end in ends if grows and 4 * end <= 3 * length), length]


def cache_of(length, cache_stages, predictor) -> Any:
    """Returns the `Growing`, `Appended`, `Staged` or `OneStep` cache of a search.

    Args:
        length: Length of the result L, a Python integer.
        cache_stages: See `SearchOptions`.
        predictor: The `Predictor`.

    Raises:
        ValueError: See `stages`.
    """
    if isinstance(cache_stages, Unrolled):
        return cache_stages.cache(length)
    if cache_stages == EACH:
        return Appended(length) if predictor.grows else Staged([length])
    if cache_stages is None and predictor.grows and 3 * length > 4 * FIRST:
        return Growing(length)
    return Staged(stages(length, cache_stages or (), predictor.grows))


def reads_prompts(cache, predictor) -> bool:
    """Returns whether a search reads prompts in one pass; otherwise each token takes a step.

    The state of a mixer follows a prompt in a loop, which an `Unrolled` search must not have.

    Args:
        cache: Result of `cache_of`.
        predictor: The `Predictor`.
    """
    return predictor.grows or not isinstance(cache, OneStep)


class Staged(typing.NamedTuple):
    """A cache that grows through sizes that are known when a graph is made.

    Each step of a `Transformer` reads its whole cache. With stages, the cost of a step depends on
    the actual length of the outputs instead of their maximum length. The cache grows to its last
    size even if the search has ended, because XLA and LiteRT need fixed shapes.
    """

    ends: list  # result of `stages`

    def first(self, prompts) -> int:
        """Returns the number of positions that the predictor's state holds at the beginning.

        Args:
            prompts: The `Prompts`, or `None`.
        """
        return self.ends[0]

    def run(self, predictor, running, step, state, read=None) -> Any:
        """Runs the steps of a search, with a predictor whose state grows with the output.

        Args:
            predictor: A `Predictor`.
            running: Function from a state to a boolean: `False` ends the search before its limit.
            step: Function from a state to a tuple that contains the next state.
            state: Initial state of the search, a named tuple with `index`, the index of the step,
                and `predictor_state`, which holds the positions of `first`.
            read: The `ReadPrompts`, or `None`.

        Returns:
            The final state.
        """

        def recalled(state, start):
            if read is None:
                return state
            recalled = read.recall(predictor, state.predictor_state, start)
            return state._replace(predictor_state=recalled)

        state = recalled(state, 0)
        for end, next_end in itertools.pairwise([*self.ends, self.ends[-1]]):
            state = steps_until(running, step, state, end)
            if next_end > end:
                extended = predictor.extend(state.predictor_state, next_end - end)
                state = recalled(state._replace(predictor_state=extended), end)
        return state


class Growing(typing.NamedTuple):
    """A cache that grows while a search needs it, by `GROWTH` positions at a time.

    Memory and time depend on the actual length of the outputs, not on their maximum length, and the
    graph holds at most two copies of a step. One is for the first positions, without prompts, and
    one for all later ones. The number of positions is not known in the graph, so that neither XLA
    nor LiteRT can compile it.
    """

    length: int  # of the result

    def first(self, prompts) -> Any:
        """Returns the number of positions at the beginning: all that the prompts fill."""
        return FIRST if prompts is None else prompts.count

    def run(self, predictor, running, step, state, read=None) -> Any:
        """Runs the steps of a search; see `Staged.run`."""
        first, more = self.first(read), min(GROWTH, self.length)
        if read is None:
            state = steps_until(running, step, state, first)
        else:
            recalled = read.recall(predictor, state.predictor_state, 0)
            state = state._replace(predictor_state=recalled)

        def extended(state):
            return state._replace(predictor_state=predictor.extend(state.predictor_state, more))

        def goes_on(state, end):
            return tf.logical_and(state.index < self.length, running(state))

        def stage(state, end):
            state = steps_until(running, step, state, tf.minimum(end, self.length))
            return tf.cond(goes_on(state, end), lambda: extended(state), lambda: state), end + more

        state, shapes = extended(state), None
        if not tf.executing_eagerly():
            shapes = common_shapes(state, extended(state)), tf.TensorShape([])
        begun = state, tf.convert_to_tensor(first + more)
        state, _ = tf.while_loop(goes_on, stage, begun, shapes)
        return state


class Appended(typing.NamedTuple):
    """A cache to which each step appends its position.

    The graph has a single loop with a single copy of a step, and a step reads only positions that
    exist. Each step copies the cache, which ONNX Runtime does faster than it selects the positions
    of a cache of fixed size. As in `Growing`, the number of positions is not known in the graph.
    """

    length: int  # of the result

    def first(self, prompts) -> Any:
        """Returns the number of positions at the beginning: all that the prompts fill."""
        return 0 if prompts is None else prompts.count

    def run(self, predictor, running, step, state, read=None) -> Any:
        """Runs the steps of a search; see `Staged.run`."""
        if read is not None:
            recalled = read.recall(predictor, state.predictor_state, 0)
            state = state._replace(predictor_state=recalled)

        def extended(state):
            return state._replace(predictor_state=predictor.extend(state.predictor_state, 1))

        def goes_on(state):
            return tf.logical_and(state.index < self.length, running(state))

        def append(state):
            (state,) = step(state)
            return (extended(state),)

        state, shapes = extended(state), None
        if not tf.executing_eagerly():
            shapes = (common_shapes(state, extended(state)),)
        (state,) = tf.while_loop(goes_on, append, (state,), shapes)
        return state


def steps_until(running, step, state, end):
    """Returns the state after steps up to position `end`, or up to the end of the search."""
    (state,) = tf.while_loop(
        lambda state: tf.logical_and(state.index < end, running(state)), step, (state,)
    )
    return state


def common_shapes(state, other):
    """Returns the static shapes of both states, with unknown sizes where they differ."""

    def common(one, other):
        sizes = zip(one.shape, other.shape, strict=True)
        return tf.TensorShape([size if size == same else None for size, same in sizes])

    return tf.nest.map_structure(common, state, other)


def check_lengths(longest, min_length=1, cache_length=None) -> int:
    """Checks lengths and returns that of the cache. Values of tensors cannot be checked here."""
    lengths = {"cache_length": cache_length, "min_length": min_length}
    lengths = {name: n for name, n in lengths.items() if isinstance(n, numbers.Integral)}
    most = longest
    for name, length in lengths.items():
        if not 1 <= length <= most:
            raise ValueError(f"`{name}` must be between 1 and {most}. Received: {name}={length}.")
        most = length
    return lengths.get("cache_length", longest)


def output_limit(search, config, lengths, longest) -> Tensor | int:
    """Returns the maximum length of outputs, with the tokens that they begin with.

    Args:
        search: The search.
        config: Configuration of the model.
        lengths: Number of tokens of each source, end included, an integer or int32 `[B]`. For a
            language model, of each prompt.
        longest: Maximum number of tokens that the model or the cache allows.
    """
    vocabulary, counted, beginning = Vocabulary.of(config), lengths, lengths - 1
    if config.encoder is None:
        counted = lengths - beginning  # the end, see `DecoderOnly.lengths`
    else:
        beginning = vocabulary.rules.beginning_length
    limit = smaller(search.limit(counted, longest) + beginning, longest)
    if vocabulary.rules.max_length_ratio is None:
        return limit
    return tf.minimum(limit, vocabulary.limits(lengths, longest))


def smaller(length, longest) -> Tensor | int:
    """Returns the smaller of two lengths, the first of which may be a tensor, or `None`: none."""
    if length is None:
        return longest
    return (tf.minimum if is_tensor(length) else min)(length, longest)


def limit_of(max_length, cache_length, batch, predictor, inputs) -> Tensor:
    """Returns the maximum length of the output of each sentence, `[B]`.

    It includes the tokens that the output begins with, which `max_length` does not count.

    Args:
        max_length: Integer, or tensor, scalar or `[B]`.
        cache_length: Length of the cache, a Python integer.
        batch: Number of sentences B, scalar tensor.
        predictor: The `Predictor`, whose vocabulary may have a `max_length_ratio`.
        inputs: Inputs of the predictor.
    """
    limit = tf.cast(max_length, tf.int32)
    limit = tf.reshape(tf.minimum(tf.maximum(limit, 1), cache_length), [-1])  # [B] or [1]
    limit = tf.minimum(limit + predictor.beginning_lengths(inputs), cache_length)
    limit += tf.zeros([batch], tf.int32)
    if not limits_by_source(predictor, inputs):
        return limit
    by_source = predictor.vocabulary.limits(predictor.lengths(inputs), cache_length)
    return tf.minimum(limit, by_source)


def limits_by_source(predictor, inputs) -> bool:
    """Returns whether the length of a source limits its output."""
    return predictor.vocabulary.rules.max_length_ratio is not None and (
        predictor.lengths(inputs) is not None
    )


def mean_of_sums(sums, tokens, vocabulary, prompt) -> Tensor:
    """Returns the mean log-probability of the tokens of outputs, `[...]`, as Whisper computes it.

    An output that was cut at its maximum length counts as if an end token followed, as there.

    Args:
        sums: Sums of log-probabilities, `[...]`.
        tokens: Token ids `[..., L]`.
        vocabulary: The `Vocabulary`.
        prompt: Number of tokens of each prompt, `[B, 1]`, or an integer.
    """
    is_word = tf.not_equal(tokens, vocabulary.pad_id) & tf.not_equal(tokens, vocabulary.eos_id)
    words = tf.reduce_sum(tf.cast(is_word, tf.int32), axis=-1)  # [...]
    if tf.is_tensor(prompt):
        prompt = tf.reshape(prompt, [-1] + [1] * (words.shape.rank - 1))
    return sums / tf.cast(tf.maximum(words - prompt, 0) + 1, tf.float32)


def outputs_of(
    tokens, scores, token_scores=(), alignment=(), no_speech=None, mean_log_probability=()
) -> dict[str, Tensor]:
    """Returns the outputs of a search by the names of the fields of `Found`.

    Args:
        tokens: Token ids.
        scores: Scores of the outputs.
        token_scores: Log-probabilities of the tokens; `()` if not requested.
        alignment: Attention weights of the source positions; `()` if not requested.
        no_speech: Probabilities of silence; `None` if not requested.
        mean_log_probability: Mean log-probabilities of the tokens; `()` if not requested.
    """
    outputs = {
        "tokens": tokens,
        "scores": scores,
        "token_scores": token_scores,
        "alignment": alignment,
        "no_speech": () if no_speech is None else no_speech,
        "mean_log_probability": mean_log_probability,
    }
    return {name: value for name, value in outputs.items() if not isinstance(value, tuple)}
