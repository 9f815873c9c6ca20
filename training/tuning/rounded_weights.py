"""Quantisation-aware training: updates are computed with weights as a .tflite file stores them."""

import contextlib
from collections.abc import Generator
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from keras_transformer.layers.inputs.embedding import PositionalEmbedding
from keras_transformer.tensors import Tensor

HIGHEST = {"int8": 127, "int4": 7}  # -128 and -8 are not used
SMALLEST = 1024  # numbers of the smallest matrix that a file stores in int8 or int4
LEAST = 0.5e-6  # smaller numbers have the scale of this one, as in a file
KERNEL = "kernel"  # end of the names of weights of products and convolutions, [..., outputs]
# Further scales of int4 that are tried, relative to the one that represents the largest number. A
# file tries 150, whose best has 1 % less squared error for normally distributed weights.
TRIED = np.linspace(0.6, 1, 8)[:-1]


class RoundedWeights:
    """The weights of a model as `export litert --quantize` stores them.

    The weights of products and convolutions and the tables of tokens are rounded, if they have at
    least 1,024 numbers. The weights of an output, or of a token, become whole numbers times a scale
    of their own. All other weights do not change. Of these, a file rounds relative positions and
    the matrices of the scores `general` and `additive` to int8. It also rounds the inputs of
    products.

    Training uses the rounded weights for the loss and its gradient, and adds the updates to the
    weights before rounding, since most updates are smaller than a step between two rounded numbers.
    The gradient with respect to a weight is that with respect to the rounded weight (the
    straight-through estimator).

    Args:
        model: A built Keras model.
        kind: `"int8"` or `"int4"`. Convolutions, and matrices with an odd number of weights for
            each output, are rounded to int8 in any case, as in a file.

    Attributes:
        kind: See above.
        count: Number of weights that are rounded.

    Raises:
        ValueError: If no weight is rounded.

    Reference: Jacob et al. (2018), "Quantization and Training of Neural Networks for Efficient
        Integer-Arithmetic-Only Inference", section 3; Bengio et al. (2013) for the gradient. Not in
        Vaswani et al. (2017).
    """

    def __init__(self, model: Any, kind: Literal["int8", "int4"]):
        self.kind = kind
        layers = model._flatten_layers()
        tables = {id(x.table) for x in layers if isinstance(x, PositionalEmbedding)}
        self._variables, self._options = [], []
        for variable in model.weights:
            is_table, rank = id(variable) in tables, len(variable.shape)
            is_matrix = is_table or variable.name.endswith(KERNEL)
            if not is_matrix or np.prod(variable.shape) < SMALLEST:
                continue
            axes = (1,) if is_table else tuple(range(rank - 1))
            stays_in_int8 = rank > 2 or variable.shape[axes[0]] % 2
            self._variables.append(variable)
            self._options.append(("int8" if stays_in_int8 else kind, axes))
        self.count = sum(int(np.prod(variable.shape)) for variable in self._variables)
        if not self.count:
            raise ValueError(
                f"`training.quantize` needs a matrix of at least {SMALLEST:,} weights; this model "
                f"has none. Received: training.quantize={kind!r}."
            )

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        """Context manager that gives the model its rounded weights, eagerly or in a graph.

        The weights before rounding are restored bit for bit at the end; eagerly, also after an
        exception.
        """
        trained = [tf.identity(variable.value) for variable in self._variables]
        pairs = zip(trained, self._options, strict=True)
        _assign(self._variables, [rounded(values, *options) for values, options in pairs])
        try:
            yield
        finally:
            _assign(self._variables, trained)


@tf.function(autograph=False)  # traced once for all weights of a shape
def rounded(weights, kind, axes=(1,)) -> Tensor:
    """Returns the numbers that stand for weights in int8 or int4, float32 in their shape.

    The weights of an output are rounded to whole numbers, of at most 127 or 7, times a scale. In
    int8 the scale represents their largest number; in int4 it is this scale or the one of `TRIED`
    with the smallest squared error. A file stores exactly these numbers: when they are rounded
    again, the largest one is 127 or 7 times the same scale.

    Args:
        weights: float32, of any shape.
        kind: `"int8"` or `"int4"`.
        axes: Axes of the weights of an output, which share a scale.
    """
    highest = HIGHEST[kind]
    largest = tf.reduce_max(tf.abs(weights), axis=axes, keepdims=True)
    largest = tf.maximum(largest, LEAST) / highest

    def in_units_of(scale):
        return scale * tf.clip_by_value(tf.round(weights / scale), -highest, highest)

    def error_of(numbers):
        return tf.reduce_sum(tf.square(numbers - weights), axis=axes, keepdims=True)

    best = in_units_of(largest)
    if kind == "int8":
        return best
    smallest = error_of(best)
    for factor in TRIED:
        numbers = in_units_of(factor * largest)
        error = error_of(numbers)
        best = tf.where(error < smallest, numbers, best)
        smallest = tf.minimum(error, smallest)
    return best


def _assign(variables, values):
    """Assigns values to variables, also in a replica of a `tf.distribute` strategy."""
    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        return

    def on_all(strategy, values):
        for variable, value in zip(variables, values, strict=True):
            strategy.extended.update(
                variable.value, lambda own, new: own.assign(new), (value,), group=False
            )

    tf.distribute.get_replica_context().merge_call(on_all, (values,))
