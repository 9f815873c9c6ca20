"""A loop over the positions of the output, in stages: short outputs need a short cache only."""

import itertools

import tensorflow as tf

STAGES = (16, 64, 128, 192, 384)  # few: each is one more body of the loop, which takes XLA seconds


def stages(length, cache_stages):
    """Returns how many positions the cache has in each stage; the last number is `length`.

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


def in_stages(model, running, step, state, ends):
    """Runs the steps of a search, with a cache that grows as the output does.

    Each step reads the whole cache. So it costs what the outputs are long, not what they may be.

    Args:
        model: A `Transformer`.
        running: Function of a state: whether there is another step, but for the limit.
        step: Function of a state to a tuple of the next one.
        state: The state at the beginning, a named tuple with an `index`, the number of the step,
            and a `cache` for the positions of the first stage.
        ends: From `stages`.

    Returns:
        The state at the end.
    """
    for end, next_end in itertools.pairwise([*ends, ends[-1]]):
        (state,) = tf.while_loop(
            lambda state, end=end: tf.logical_and(state.index < end, running(state)), step, (state,)
        )
        if next_end > end:
            cache = model.decoder.extended_cache(state.cache, next_end - end)
            state = state._replace(cache=cache)
    return state


def positions_of(cache):
    """Returns how many positions a cache has, with those that do not change any more."""
    return sum(part.shape[2] for part in cache[0][::2])
