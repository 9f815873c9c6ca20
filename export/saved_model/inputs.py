"""Inputs of signatures, whose shapes are checked in the graph."""

import functools

import tensorflow as tf


def of_these_shapes(function, specs):
    """Wraps a function so that its graph refuses tensors of other shapes.

    TensorFlow Serving checks the shapes of a request by itself. Python calls a signature with
    whatever it is given, and a column of strings would be answered as if it were something else.

    Args:
        function: Function of tensors.
        specs: Dictionary from its arguments, in their order, to `tf.TensorSpec`s.

    Returns:
        A function with the same arguments.
    """

    @functools.wraps(function)
    def checked(*inputs, **named):
        named = {**dict(zip(specs, inputs, strict=False)), **named}
        return function(
            **{name: tf.ensure_shape(value, specs[name].shape) for name, value in named.items()}
        )

    return checked
