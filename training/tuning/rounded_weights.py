"""Quantization-aware training: updates are computed with weights as a .tflite file stores them."""

import contextlib
from collections.abc import Generator
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from keras_transformer.layers.inputs.embedding import PositionalEmbedding
from keras_transformer.tensors import Tensor

HIGHEST = {"int8": 127, "int4": 7}  # -128 and -8 are not used
SMALLEST = 1024  # numbers of the smallest matrix that a file stores in int8 or int4
KERNELS = ("kernel", "recurrent_kernel")  # of products, [inputs, outputs]
# Scales of int4 that are tried for each row, relative to that which represents its largest number.
# A file tries 150, whose best has 1 % less squared error for normally distributed weights.
TRIED = np.linspace(0.6, 1, 8)


class RoundedWeights:
    """The weights of a model as `export litert --quantize` stores them.

    Matrices of at least 1,024 numbers are rounded: the weights of products and the tables of
    tokens. Each row, the weights of an output or of a token, consists of whole numbers times a
    scale of its own. Biases, norms, tables of positions and the weights of convolutions do not
    change, and neither do the inputs of products, which a file rounds to int8.

    Training uses the rounded weights for the loss and its gradient, and adds the updates to the
    weights before rounding, since most updates are smaller than a step between two rounded numbers.
    The gradient with respect to a weight is that with respect to the rounded weight (the
    straight-through estimator).

    Args:
        model: A built Keras model.
        kind: `"int8"` or `"int4"`. In int4, a matrix whose rows have an odd number of weights is
            rounded to int8, as in a file.

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
        self._variables, self._kinds = [], []  # a kind and whether it is a table
        for variable in model.weights:
            is_table = id(variable) in tables
            if not (is_table or variable.name in KERNELS) or len(variable.shape) != 2:
                continue
            if np.prod(variable.shape) < SMALLEST:
                continue
            inputs = variable.shape[1 if is_table else 0]
            self._variables.append(variable)
            self._kinds.append(("int8" if inputs % 2 else kind, is_table))
        self.count = sum(int(np.prod(variable.shape)) for variable in self._variables)
        if not self.count:
            raise ValueError(
                f"`training.quantize` needs a matrix of at least {SMALLEST:,} weights; this model "
                f"has none. Received: training.quantize={kind!r}."
            )

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        """Context manager that gives the model its rounded weights, eagerly or in a graph.

        The weights before rounding are restored bit for bit at the end, even after an exception.
        """
        trained = [tf.identity(variable.value) for variable in self._variables]
        pairs = zip(trained, self._kinds, strict=True)
        _assign(self._variables, [rounded(values, *kind) for values, kind in pairs])
        try:
            yield
        finally:
            _assign(self._variables, trained)


def rounded(matrix, kind, is_table=True) -> Tensor:
    """Returns the numbers that stand for a matrix in int8 or int4, float32 in its shape.

    Each row is rounded to whole numbers, of at most 127 or 7, times a scale of its own. In int8 the
    scale represents the largest number of the row; in int4 it is the one of `TRIED` with the
    smallest squared error. A file stores exactly these numbers: when they are rounded again, their
    largest one is 127 or 7 times the same scale.

    Args:
        matrix: float32 `[N, M]`.
        kind: `"int8"` or `"int4"`.
        is_table: Whether the rows of the matrix have scales; otherwise its columns have.
    """
    axis, highest = 1 if is_table else 0, HIGHEST[kind]
    largest = tf.reduce_max(tf.abs(matrix), axis=axis, keepdims=True) / highest
    largest = tf.where(largest > 0, largest, 1.0)  # [N, 1] or [1, M]

    def in_units_of(scale):
        return scale * tf.clip_by_value(tf.round(matrix / scale), -highest, highest)

    if kind == "int8":
        return in_units_of(largest)
    best, smallest = None, None
    for factor in TRIED:
        numbers = in_units_of(factor * largest)
        error = tf.reduce_sum(tf.square(numbers - matrix), axis=axis, keepdims=True)
        if best is None:
            best, smallest = numbers, error
            continue
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
