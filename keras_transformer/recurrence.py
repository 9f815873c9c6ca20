"""A recurrence of all positions, one after the other, with a gradient of its own."""

from typing import Any

import keras
from keras import ops

from keras_transformer.gradients import custom_gradient
from keras_transformer.tensors import Tensor


def recurrence(
    cell: Any,
    x: Tensor,
    kernel: Tensor,
    bias: Tensor,
    real: Tensor | None = None,
    reverse: bool = False,
) -> Tensor:
    """Returns the outputs of a cell at all positions, `[T, B, U]`; its first state is zero.

    The gradient of the weights is one product over all positions. This is why training takes less
    time than with `keras.layers.LSTM` and `GRU`, which add up one for each position.

    Args:
        cell: The mixer with the equations, a `Recurrent`.
        x: What follows from the inputs, `[T, B, G]`, at least float32.
        kernel: Weights `[U, G]` of the previous output. Products are computed in their dtype.
        bias: `[G]`, added to the product, in the dtype of `x`.
        real: Boolean `[T, B, 1]`, `False` for padding, which does not change the state. `None`: no
            padding.
        reverse: Whether the recurrence begins with the last position.
    """
    masks = () if real is None else (real,)

    @custom_gradient
    def outputs(x, kernel, bias):
        states, kept = _forward(cell, x, kernel, bias, masks, reverse)

        def gradient(upstream):
            before = tuple(_moved(state, reverse) for state in states)
            by_x, by_r = _backward(cell, upstream, before, kept, kernel, masks, reverse)
            flat = ops.reshape(by_r, (-1, kernel.shape[1]))  # [T * B, G]
            rows = ops.reshape(before[0], (-1, kernel.shape[0]))  # [T * B, U]
            rows, columns = ops.cast(rows, kernel.dtype), ops.cast(flat, kernel.dtype)
            return by_x, ops.matmul(ops.transpose(rows), columns), ops.sum(flat, axis=0)

        return states[0], gradient

    return outputs(x, kernel, bias)


def recurrent_states(
    cell: Any, x: Tensor, kernel: Tensor, bias: Tensor, real: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Returns the states of a cell at all positions, tensors `[T, B, U]`, without a gradient.

    Args:
        cell, x, kernel, bias, real: See `recurrence`.
    """
    return _forward(cell, x, kernel, bias, () if real is None else (real,), reverse=False)[0]


def last_of(states: Tensor) -> Tensor:
    """Returns the last of states `[T, B, ...]`, and zeros if there is none."""
    return ops.sum(states[-1:], axis=0)


def product(x: Tensor, kernel: Tensor) -> Tensor:
    """Returns `x @ kernel` `[B, G]` in the dtype of `x`, computed in that of the kernel."""
    return ops.cast(ops.matmul(ops.cast(x, kernel.dtype), kernel), x.dtype)


def _forward(cell, x, kernel, bias, masks, reverse):
    """Returns the states at all positions, and what the gradient needs: tuples of `[T, B, ...]`."""

    def step(before, position):
        after, kept = cell.update(position[0], product(before[0], kernel) + bias, before)
        state = _where(position[1:], after, before)
        return state, (*state, *kept)

    zero = ops.zeros((ops.shape(x)[1], kernel.shape[0]), x.dtype)
    results = scan(step, (zero,) * cell.count, (x, *masks), reverse)
    return results[: cell.count], results[cell.count :]


def _backward(cell, upstream, before, kept, kernel, masks, reverse):
    """Returns the gradients of `x` and `r` at all positions, `[T, B, G]` each; 0 for padding."""
    transposed = ops.transpose(kernel)

    def step(later, position):
        output, position = position[0], position[1:]
        mask, position = position[: len(masks)], position[len(masks) :]
        upstream = (later[0] + output, *later[1:])
        by_x, by_r, earlier = cell.changes(upstream, position[: cell.count], position[cell.count :])
        gradients = (by_x,) if by_r is by_x else (by_x, by_r)
        gradients = _where(mask, gradients, (ops.zeros_like(by_x),) * len(gradients))
        by_r = gradients[-1]
        earlier = (earlier[0] + product(by_r, transposed), *earlier[1:])
        return _where(mask, earlier, upstream), gradients

    zero = ops.zeros(ops.shape(upstream)[1:], upstream.dtype)
    positions = (upstream, *masks, *before, *kept)
    gradients = scan(step, (zero,) * cell.count, positions, not reverse)
    return gradients[0], gradients[-1]


def _where(mask, values, others):
    if not mask:
        return tuple(values)
    return tuple(ops.where(mask[0], *pair) for pair in zip(values, others, strict=True))


def _moved(states, reverse):
    """Returns for each position the state before it, `[T, B, U]`."""
    zero = ops.zeros_like(states[:1])
    return ops.concatenate([states[1:], zero] if reverse else [zero, states[:-1]], axis=0)


def scan(step: Any, state: tuple, positions: tuple, reverse: bool = False) -> tuple[Tensor, ...]:
    """Returns the outputs of `step` at all positions, a tuple of `[T, ...]`.

    Args:
        step: Function from a state and the tensors of a position to the next state and the outputs
            of the position.
        state: The first state, a tuple of tensors.
        positions: Tensors `[T, ...]`, a tuple.
        reverse: Whether the last position comes first.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.scan(step, state, positions, reverse=reverse)[1]
    import tensorflow as tf

    length = tf.shape(positions[0])[0]
    here = tuple(
        tf.ensure_shape(tf.zeros(tf.shape(x)[1:], x.dtype), x.shape[1:]) for x in positions
    )
    first = step(state, here)[1]  # for the shapes; a graph does not compute it

    def all_positions():
        return _loop(step, state, positions, first, reverse)

    def none():  # a list of no tensors of an unknown shape cannot become a tensor
        return tuple(tf.zeros(tf.concat([[length], tf.shape(x)], 0), x.dtype) for x in first)

    known = positions[0].shape[0]
    if known is None:
        return tf.cond(length > 0, all_positions, none)
    return all_positions() if known else none()


def _loop(step, state, positions, first, reverse):
    """Returns the outputs of `step` at all positions; `first` has their shapes."""
    import tensorflow as tf

    length = tf.shape(positions[0])[0]
    outputs = [tf.TensorArray(x.dtype, length, element_shape=x.shape) for x in first]

    def advance(count, state, outputs):
        here = length - 1 - count if reverse else count
        state, values = step(state, tuple(tf.gather(x, here) for x in positions))
        written = [array.write(here, x) for array, x in zip(outputs, values, strict=True)]
        return count + 1, state, written

    beginning: Any = (tf.constant(0), state, outputs)
    _, _, outputs = tf.while_loop(lambda count, *_: count < length, advance, beginning)
    # Lists lose the length; without it, the loop of the gradient would stand under a condition.
    count = positions[0].shape[0]
    stacks = [array.stack() for array in outputs]
    return tuple(tf.ensure_shape(stack, [count, *stack.shape[1:]]) for stack in stacks)
