"""The loop of a search over the positions of the output, and what a search returns."""

import itertools

import tensorflow as tf

STAGES = (16, 64, 128, 192, 384)  # few: each is one more body of the loop, which takes XLA seconds


def stages(length, cache_stages):
    """Returns for how many positions there is room in each stage; the last number is `length`.

    Args:
        length: Positions of the last stage.
        cache_stages: Positions of those before it, as far as they are three quarters or fewer: a
            stage is not worth its part of the graph if the last one is hardly longer.

    Raises:
        ValueError: If `cache_stages` are not positive and increasing.
    """
    ends = list(cache_stages)
    if ends != sorted(set(ends)) or any(end < 1 for end in ends):
        raise ValueError(
            "`cache_stages` must be positive and increasing. "
            f"Received: cache_stages={cache_stages}."
        )
    return [*(end for end in ends if 4 * end <= 3 * length), length]


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
