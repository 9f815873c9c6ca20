"""The loop of a search over the positions of the output, its limits, and what it returns."""

import itertools
import numbers

import tensorflow as tf

STAGES = (16, 64, 128, 192, 384)  # few: each is one more body of the loop, which takes XLA seconds


def stages(length, cache_stages, grows=True):
    """Returns for how many positions there is room in each stage; the last number is `length`.

    Args:
        length: Positions of the last stage.
        cache_stages: Positions of those before it, as far as they are three quarters or fewer: a
            stage is not worth its part of the graph if the last one is hardly longer.
        grows: Whether the state of the predictor does; otherwise there is one stage.

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


def in_stages(predictor, running, step, state, ends):
    """Runs the steps of a search, with a predictor whose state grows as the output does.

    Each step of a `Transformer` reads its whole cache. So it costs what the outputs are long, not
    what they may be.

    Args:
        predictor: A `Predictor`.
        running: Function of a state: whether there is another step, but for the limit.
        step: Function of a state to a tuple of the next one.
        state: The search's state at the beginning, a named tuple with an `index`, the number of
            the step, and a `predictor_state` with room for the positions of the first stage.
        ends: From `stages`.

    Returns:
        The state at the end.
    """
    for end, next_end in itertools.pairwise([*ends, ends[-1]]):
        (state,) = tf.while_loop(
            lambda state, end=end: tf.logical_and(state.index < end, running(state)), step, (state,)
        )
        if next_end > end:
            extended = predictor.extend(state.predictor_state, next_end - end)
            state = state._replace(predictor_state=extended)
    return state


def check_lengths(longest, min_length=1, max_length=None, cache_length=None):
    """Returns the length of the cache. The values of tensors cannot be checked here."""
    lengths = {"cache_length": cache_length, "max_length": max_length, "min_length": min_length}
    lengths = {name: n for name, n in lengths.items() if isinstance(n, numbers.Integral)}
    most = longest
    for name, length in lengths.items():
        if not 1 <= length <= most:
            raise ValueError(f"`{name}` must be between 1 and {most}. Received: {name}={length}.")
        most = length
    return lengths.get("cache_length", lengths.get("max_length", longest))


def limit_of(max_length, cache_length, batch):
    """The longest output of each sentence, `[B]`."""
    limit = tf.cast(cache_length if max_length is None else max_length, tf.int32)
    limit = tf.reshape(tf.minimum(tf.maximum(limit, 1), cache_length), [-1])  # [B] or [1]
    return limit + tf.zeros([batch], tf.int32)


def make_result(tokens, scores, token_scores=(), alignment=()):
    """Returns tokens and scores, or a dictionary of them and of what else was asked for.

    Args:
        tokens: Token ids.
        scores: Scores of the outputs.
        token_scores: Log-probabilities of the tokens; `()` if not asked for.
        alignment: Weights of the source's positions; `()` if not asked for.
    """
    details = {"token_scores": token_scores, "alignment": alignment}
    details = {name: value for name, value in details.items() if not isinstance(value, tuple)}
    return {"tokens": tokens, "scores": scores, **details} if details else (tokens, scores)
