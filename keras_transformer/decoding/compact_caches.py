"""Caches of a beam search that drop the entries which no hypothesis attends to any more.

Hypotheses of a beam soon have most of their ancestors in common: of the N entries that the steps
wrote at an early position, only one is then in use. A cache that drops the others has about as many
entries as the output has tokens, instead of N times as many.
"""

import typing
from typing import Any

from keras_transformer.decoding.loop import Growing, Staged, common_shapes, steps_until
from keras_transformer.lazy_tensorflow import tf

SHARE = 16  # positions of the past for each new one: the past is copied when they are computed
GROWTH = 16  # new positions of a cache whose size is not fixed


def compacted(cache) -> Any:
    """Returns a cache that drops unused entries in place of a `Staged` or `Growing`, if one exists.

    Args:
        cache: Result of `cache_of`.
    """
    if isinstance(cache, Growing):
        return CompactGrowing(cache.length)
    if isinstance(cache, Staged) and len(cache.ends) > 1:
        return CompactStaged.of(cache.ends)
    return cache


class CompactStaged(typing.NamedTuple):
    """A cache of fixed sizes, for XLA and LiteRT, that drops unused entries.

    The first stage ends after `start` positions. Each stage of `sizes` repeats two parts: it moves
    the entries in use into the slots of the past, and computes further positions. It ends when the
    entries in use do not fit there any more. The last stage has room for all entries.
    """

    start: int  # positions of the first stage
    sizes: list  # pairs of slots for the past and positions that are added at a time
    length: int  # of the result

    @classmethod
    def of(cls, ends) -> "CompactStaged":
        """Returns the cache with stages for `ends` positions, the result of `stages`."""
        start, *_, length = ends
        sizes, slots = [], start
        for past in ends[:-1]:
            new = max(start, past // SHARE)
            if slots <= past and 4 * (past + new) <= 3 * length:
                sizes.append((past, new))
                slots = past + new
        new = min(max(start, length // SHARE), length - slots)
        return cls(start, [*sizes, (length - new, new)], length)

    def first(self, prompts) -> int:
        """Returns the number of positions at the beginning."""
        return self.start

    def run(self, predictor, running, step, state, read=None) -> Any:
        """Runs the steps of a search; see `Staged.run`."""
        state = steps_until(running, step, state, self.start)
        for past, new in self.sizes:
            state = self._stage(predictor, running, step, state, past, new)
        return state

    def _stage(self, predictor, running, step, state, past, new):
        """Returns the state when the entries in use no longer fit into the slots of the past."""

        def goes_on(state):
            fits = _most_used(predictor, state) <= past * state.last.shape[1]
            return running(state) & (state.index < self.length) & fits

        def repeated(state):
            # So that a repetition ends at `length`: in the last stage, entries of all positions
            # but the `new` ones fit into the past.
            end = state.index + 1 + (self.length - 1 - state.index) % new
            state = _compact(predictor, state, past, new)
            return (steps_until(running, step, state, end),)

        begun = (_compact(predictor, state, past, new),)  # the loop needs states of one shape
        (state,) = tf.while_loop(goes_on, repeated, begun)
        return state


class CompactGrowing(typing.NamedTuple):
    """A cache that grows while a search needs it, by `GROWTH` positions, after dropping entries."""

    length: int  # of the result

    def first(self, prompts) -> int:
        """Returns the number of positions at the beginning."""
        return GROWTH

    def run(self, predictor, running, step, state, read=None) -> Any:
        """Runs the steps of a search; see `Staged.run`."""

        def grown(state):
            width = state.last.shape[1]
            slots = -(-_most_used(predictor, state) // width)
            return _compact(predictor, state, slots, GROWTH)

        def goes_on(state):
            return running(state) & (state.index < self.length)

        def repeated(state):
            end = tf.minimum(state.index + GROWTH, self.length)
            return (steps_until(running, step, grown(state), end),)

        state = grown(steps_until(running, step, state, min(GROWTH, self.length)))
        shapes = None
        if not tf.executing_eagerly():
            shapes = (common_shapes(state, grown(state)),)
        (state,) = tf.while_loop(goes_on, repeated, (state,), shapes)
        return state


def _most_used(predictor, state):
    """Returns the largest number of entries in use in a sentence that is not done, a scalar."""
    used = tf.where(state.done, 0, predictor.count_used(state.predictor_state))  # [B]
    return tf.maximum(tf.reduce_max(used), 0)  # of an empty batch: the smallest integer


def _compact(predictor, state, slots, new):
    """Returns the state of a search with entries in use in `slots`, and room for `new` positions.

    In a sentence that is done, entries may be lost.
    """
    compact = predictor.compact(state.predictor_state, slots, new, state.index)
    return state._replace(predictor_state=compact)
