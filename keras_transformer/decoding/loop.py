"""The loop of a search over output positions, with its limits and its result."""

import itertools
import numbers
from typing import Any

import tensorflow as tf

from keras_transformer.tensors import Tensor

# Few stages, because each is a loop of its own in the graph, which takes XLA seconds to compile.
STAGES = (16, 64, 128, 192, 384)


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
    if ends != sorted(set(ends)) or any(end < 1 for end in ends):
        raise ValueError(
            "`cache_stages` must be positive and increasing. "
            f"Received: cache_stages={cache_stages}."
        )
    return [*(end for end in ends if grows and 4 * end <= 3 * length), length]


def in_stages(predictor, running, step, state, ends, read=None) -> Any:
    """Runs the steps of a search, with a predictor whose state grows with the output.

    Each step of a `Transformer` reads its whole cache. With stages, the cost of a step depends on
    the actual length of the outputs instead of their maximum length.

    Args:
        predictor: A `Predictor`.
        running: Function from a state to a boolean: `False` ends the search before its limit.
        step: Function from a state to a tuple that contains the next state.
        state: Initial state of the search, a named tuple with `index`, the index of the step, and
            `predictor_state`, which holds the positions of the first stage.
        ends: Result of `stages`.
        read: The `ReadPrompts`, or `None`.

    Returns:
        The final state.
    """

    def recalled(state, start):
        if read is None:
            return state
        return state._replace(predictor_state=read.recall(predictor, state.predictor_state, start))

    state = recalled(state, 0)
    for end, next_end in itertools.pairwise([*ends, ends[-1]]):
        (state,) = tf.while_loop(
            lambda state, end=end: tf.logical_and(state.index < end, running(state)), step, (state,)
        )
        if next_end > end:
            extended = predictor.extend(state.predictor_state, next_end - end)
            state = recalled(state._replace(predictor_state=extended), end)
    return state


def check_lengths(longest, min_length=1, max_length=None, cache_length=None) -> int:
    """Checks lengths and returns that of the cache. Values of tensors cannot be checked here."""
    lengths = {"cache_length": cache_length, "max_length": max_length, "min_length": min_length}
    lengths = {name: n for name, n in lengths.items() if isinstance(n, numbers.Integral)}
    most = longest
    for name, length in lengths.items():
        if not 1 <= length <= most:
            raise ValueError(f"`{name}` must be between 1 and {most}. Received: {name}={length}.")
        most = length
    return lengths.get("cache_length", lengths.get("max_length", longest))


def limit_of(max_length, cache_length, batch) -> Tensor:
    """Returns the maximum length of the output of each sentence, `[B]`."""
    limit = tf.cast(cache_length if max_length is None else max_length, tf.int32)
    limit = tf.reshape(tf.minimum(tf.maximum(limit, 1), cache_length), [-1])  # [B] or [1]
    return limit + tf.zeros([batch], tf.int32)


def make_result(
    tokens, scores, token_scores=(), alignment=()
) -> tuple[Tensor, Tensor] | dict[str, Tensor]:
    """Returns the pair of tokens and scores, or a dictionary if further results are requested.

    Args:
        tokens: Token ids.
        scores: Scores of the outputs.
        token_scores: Log-probabilities of the tokens; `()` if not requested.
        alignment: Attention weights of the source positions; `()` if not requested.
    """
    details = {"token_scores": token_scores, "alignment": alignment}
    details = {name: value for name, value in details.items() if not isinstance(value, tuple)}
    return {"tokens": tokens, "scores": scores, **details} if details else (tokens, scores)
