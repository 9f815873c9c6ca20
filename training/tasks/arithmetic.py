"""Training of models that calculate: symbols of expressions, and the digits of their values."""

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_transformer.fields.field import Field
from keras_transformer.tasks.arithmetic.config import PAD
from keras_transformer.tasks.arithmetic.symbols import encode_expressions, encode_values
from keras_transformer.tensors import Tensor
from keras_transformer.training.losses.class_cross_entropy import ClassCrossEntropy
from keras_transformer.training.losses.metrics import TokenAccuracy
from keras_transformer.training.losses.weights import position_weights
from keras_transformer.training.tasks.task import Training

NONE = -1  # the digit of padding


class Symbols(Field):
    """Expressions of binary numbers, encoded as symbols.

    Args:
        layout: Arrangement of the two numbers: see `SymbolInput`.

    Call arguments of `encode`:
        column: Strings, `[B]`.

    Returns of `encode`:
        A `tf.RaggedTensor` `[B, (T)]`, int32; empty for an invalid expression.
    """

    dtype = "uint8"
    is_ragged = True
    min_length = 1
    padding = PAD

    def __init__(self, layout: str):
        self.layout = layout

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        return encode_expressions(column, self.layout)

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for valid expressions."""
        return encoded.row_lengths() > 0

    def explain(self) -> str:  # noqa: D102
        return "two binary numbers with + or * between them"

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "layout": self.layout}


class Digits(Field):
    """Digits of binary numbers, the ones first; `ArithmeticTraining.encode` computes them."""

    dtype = "int8"
    is_ragged = True
    min_length = 1
    padding = NONE

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        return encode_values(column, tf.strings.length(column))


@keras.saving.register_keras_serializable(package="keras_transformer")
class ExactMatch(keras.metrics.Mean):
    """Share of rows in which every label with a weight has the highest logit.

    Call arguments:
        y_true: Labels `[B, T]`.
        y_pred: Logits `[B, T, C]`.
        sample_weight: Weight of each label, `[B, T]`; rows without one do not count. `None`: 1.
    """

    def __init__(self, name: str = "exact_match", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        wrong = ops.argmax(y_pred, axis=-1) != ops.cast(y_true, "int32")  # [B, T]
        counts = ops.ones_like(wrong)
        if sample_weight is not None:
            counts = ops.logical_and(counts, position_weights(sample_weight, wrong) > 0)
        right = ops.logical_not(ops.any(ops.logical_and(wrong, counts), axis=1))  # [B]
        super().update_state(ops.cast(right, "float32"), sample_weight=ops.any(counts, axis=1))


class ArithmeticTraining(Training):
    """Training on expressions and values with the cross-entropy of each digit.

    A batch is (symbols [B, T], digits [B, T]), int32. The value has as many digits as the
    expression has symbols, the ones first; padding has -1 and does not count. An Extended Neural
    GPU also reads the digits, as `{"symbols": symbols, "digits": digits}`: each output follows the
    correct digits before it (teacher forcing). Its exact match is that of `predict`, since a value
    is right if each digit is right after right ones; its accuracy of digits is higher.
    """

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        return {"expression": Symbols(self.config.input.layout), "value": Digits()}

    def encode(self, columns) -> dict[str, Any]:  # noqa: D102
        symbols = self.fields["expression"].encode(columns["expression"])
        digits = encode_values(columns["value"], symbols.row_lengths())
        return {"expression": symbols, "value": digits}

    def assemble(self, expression, value) -> tuple:  # noqa: D102
        if self.config.writes_tape:
            return {"symbols": expression, "digits": value}, value
        return expression, value

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return ClassCrossEntropy(settings.label_smoothing)

    def metrics(self) -> list[keras.Metric]:  # noqa: D102
        return [TokenAccuracy(pad_id=NONE, name="accuracy"), ExactMatch()]

    def weigh(self, inputs, labels) -> Tensor:
        """Returns 1 for each digit, and 0 for padding and rows of padding."""
        symbols = inputs["symbols"] if isinstance(inputs, dict) else inputs
        real = tf.not_equal(symbols, self.pad_id) & (labels >= 0)
        return tf.cast(real, tf.float32)
