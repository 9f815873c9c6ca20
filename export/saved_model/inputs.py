"""Checks, in the graph, of the shapes of a signature's inputs."""

import functools
from collections.abc import Callable

import tensorflow as tf


def with_checked_shapes(function, specs) -> Callable:
    """Wraps a function so that its graph refuses tensors of other shapes.

    TensorFlow Serving itself checks the shapes of a request. Python does not: without this check,
    a signature would also accept strings of shape `[B, 1]`, for example, and return a wrong result.

    Args:
        function: Function of tensors.
        specs: Dictionary from the names of its arguments, in order, to `tf.TensorSpec`s.

    Returns:
        Function with the same arguments.
    """

    @functools.wraps(function)
    def checked(*inputs, **named):
        named = {**dict(zip(specs, inputs, strict=False)), **named}
        return function(
            **{name: tf.ensure_shape(value, specs[name].shape) for name, value in named.items()}
        )

    return checked
