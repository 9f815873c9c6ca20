"""Single numbers, such as the score of a pair of texts."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor

NOTATION = r"[ \t]*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?[ \t\r]*"


class Floats(Field):
    """A finite number for each example.

    Args:
        least, most: Limits of the numbers. `None`: there is no limit.

    Call arguments of `encode`:
        column: Numbers, or strings in decimal notation, `[B]`.

    Returns of `encode`:
        float32, `[B]`; NaN for a string that is not a number.
    """

    dtype = "float32"

    def __init__(self, least: float | None = None, most: float | None = None):
        self.least, self.most = least, most

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        if column.dtype != tf.string:
            return tf.cast(column, tf.float32)
        given = tf.strings.regex_full_match(column, NOTATION)
        return tf.strings.to_number(tf.where(given, tf.strings.strip(column), "nan"), tf.float32)

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for finite numbers within the limits."""
        valid = tf.math.is_finite(encoded)
        if self.least is not None:
            valid &= encoded >= self.least
        return valid if self.most is None else valid & (encoded <= self.most)

    def explain(self) -> str:  # noqa: D102
        limits = [
            f"{rule} {limit:g}"
            for rule, limit in (("at least", self.least), ("at most", self.most))
            if limit is not None
        ]
        return " of ".join(["a number", " and ".join(limits)][: 1 + bool(limits)])

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "least": self.least, "most": self.most}
