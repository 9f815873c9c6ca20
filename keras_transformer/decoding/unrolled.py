"""`Unrolled`: a search as two graphs without its loop, which is in the program that runs them."""

import typing
from collections.abc import Callable, Iterator
from typing import Any

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.never import never
from keras_transformer.tensors import Tensor

STATE, RUNNING = "state", "running"  # names of the tensors of a state begin with the first


class Unrolled:
    """One step of a search in place of its loop; a value of `SearchOptions.cache_stages`.

    Runtimes for accelerators run graphs without loops. The program then repeats the step. It calls
    a first graph, from the inputs to the state before the first step. Then it calls a second one,
    from the inputs and a state to the next state, until `running` is 0. Both are traced from the
    same function, which computes its outputs by a search with this value. What a step needs of the
    inputs besides the state, such as limits of lengths, it computes again; a converter drops the
    rest, such as the encoder, from the graph of the step.

    A state is a dictionary of tensors of fixed shapes, float32 and int32 `[B, ...]` or `[1]`: there
    are runtimes without booleans and without tensors of no axis. A step returns only tensors that
    it changes. The cache holds the longest output from the beginning. One object is used in one
    thread.

    Example:
        >>> import tensorflow as tf
        >>> from keras_transformer import Greedy, Transformer, TransformerConfig
        >>> from keras_transformer.decoding import SearchOptions, Unrolled
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100, max_length=5))
        >>> unrolled = Unrolled()
        >>> options = SearchOptions(cache_stages=unrolled)
        >>> search = lambda source: {"tokens": Greedy()(model, source, options).tokens}
        >>> source = tf.constant([[7, 8, 3]])
        >>> state, running = unrolled.begin(search, source=source), 1
        >>> while running:
        ...     outputs = unrolled.step(search, state, source=source)
        ...     state, running = {**state, **outputs}, outputs["running"]
        >>> bool(tf.reduce_all(outputs["tokens"] == Greedy()(model, source).tokens))
        True
    """

    def __init__(self) -> None:
        self._given: dict[str, Tensor] | None = None  # the state before the step
        self._states: list[dict[str, Tensor]] = []

    def begin(self, function: Callable[..., Any], **inputs: Tensor) -> dict[str, Tensor]:
        """Returns the state before the first step.

        Args:
            function: Function that computes outputs by a search with this value.
            **inputs: Its inputs.

        Raises:
            ValueError: If the function runs no search with this value, or more than one.
        """
        self._run(function, None, inputs)
        (state,) = self._states
        zero: Any = never(tf.cast(next(iter(inputs.values())), tf.float32))
        numbered = enumerate(state.items(), 1)
        return {name: _outside(leaf, number * zero) for number, (name, leaf) in numbered}

    def step(
        self, function: Callable[..., dict], state: dict[str, Tensor], **inputs: Tensor
    ) -> dict[str, Tensor]:
        """Returns the outputs after one more step, the tensors that it changes, and `running`.

        `running`, int32 `[1]`, is 0 after the last step; then the outputs are those of the search.

        Args:
            function, inputs: See `begin`.
            state: From `begin`, with all changes by previous steps.

        Raises:
            ValueError: See `begin`.
        """
        outputs = self._run(function, state, inputs)
        (changed,) = self._states
        return {**outputs, **{name: _outside(leaf) for name, leaf in changed.items()}}

    def _run(self, function, given, inputs):
        """Returns the outputs of the function, whose search puts a state into `_states`."""
        self._given, self._states = given, []
        outputs = function(**inputs)
        if len(self._states) != 1:
            raise ValueError(
                "`function` must run one search with this `Unrolled` as its `cache_stages`. "
                f"Received: a function that runs {len(self._states)}."
            )
        return outputs

    def cache(self, length: int) -> "OneStep":
        """Returns the cache of a search for outputs of this length."""
        return OneStep(length, self._given, self._states)


class OneStep(typing.NamedTuple):
    """A cache for the whole output with which a search runs one step, or none."""

    length: int  # of the result
    given: dict | None  # the state before the step; `None`: no step is run
    states: list  # to which the state is appended

    def first(self, prompts: Any) -> int:
        """Returns the number of positions at the beginning: all."""
        return self.length

    def run(
        self, predictor: Any, running: Callable, step: Callable, state: Any, read: Any = None
    ) -> Any:
        """Returns the state after the step; for the arguments see `Staged.run`."""
        if self.given is None:
            if read is not None:
                recalled = read.recall(predictor, state.predictor_state, 0)
                state = state._replace(predictor_state=recalled)
            self.states.append(dict(named_leaves(state)))
            return state
        leaves = [_inside(self.given[name], leaf) for name, leaf in named_leaves(state)]
        before = tf.nest.pack_sequence_as(state, leaves)
        (after,) = step(before)
        pairs = zip(named_leaves(before), named_leaves(after), strict=True)
        changed = {name: new for (name, old), (_, new) in pairs if new is not old}
        goes_on = running(after) & (after.index < self.length)
        self.states.append({**changed, RUNNING: goes_on})
        return after


def named_leaves(state: Any, name: str = STATE) -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors of a nest of tuples in the order of `tf.nest`, with names of their places.

    The name of `state.predictor_state.cache[0][1]` is `state_predictor_state_cache_0_1`.
    """
    if not isinstance(state, tuple):
        yield name, state
        return
    for field, value in zip(getattr(state, "_fields", range(len(state))), state, strict=True):
        yield from named_leaves(value, f"{name}_{field}")


def _outside(leaf, zero=None):
    """Returns a tensor of a search as a tensor of the state: a number with at least one axis.

    With a `zero`, an int32 scalar, it is neither a constant nor an input, and differs from others.
    Not every runtime can return a constant, an input, or one tensor as two outputs, such as the
    beginnings of two caches. With different zeros, no converter knows that these are equal.
    """
    leaf = tf.cast(leaf, tf.int32) if leaf.dtype == tf.bool else leaf
    leaf = leaf if zero is None else leaf + tf.cast(zero, leaf.dtype)
    return tf.reshape(leaf, [1]) if leaf.shape.rank == 0 else leaf


def _inside(tensor, leaf):
    """Returns a tensor of the state as the tensor of a search that is like `leaf`."""
    tensor = tf.reshape(tensor, []) if leaf.shape.rank == 0 else tensor
    return tf.not_equal(tensor, 0) if leaf.dtype == tf.bool else tensor
