"""A loop over the positions of the output, in stages: short outputs need a short cache only."""

import itertools

import tensorflow as tf

FIRST = 16  # positions of the first stage
GROWTH = 4  # of the cache from one stage to the next


def stages(length, grow_cache=True):
    """Returns how many positions the cache has in each stage; the last number is `length`.

    Each stage makes the graph larger by one more body of the loop, which takes XLA seconds.
    """
    if not grow_cache:
        return [length]
    ends = (FIRST * GROWTH**number for number in itertools.count())
    return [*itertools.takewhile(lambda end: end < length, ends), length]


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
