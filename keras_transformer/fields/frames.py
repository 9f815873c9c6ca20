"""Sequences of feature vectors, such as a spectrum of speech every 10 milliseconds."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor


class Frames(Field):
    """Sequences of frames, `[T, F]` for each example.

    Args:
        num_features: Number of features F in a frame.
        dtype: NumPy name of the dtype in which features are stored, `"float32"` or `"float16"`.
        max_length: Maximum length of a sequence, in frames; see `Field`.

    Call arguments of `encode`:
        column: Numbers, `[B, (T), F]` or `[B, T, F]`.

    Returns of `encode`:
        A `tf.RaggedTensor` `[B, (T), F]`, float32.

    Raises:
        ValueError: If `num_features` is not positive, or `encode` receives frames with another
            number of features.
    """

    is_ragged = True
    min_length = 1
    padding = 0.0

    def __init__(self, num_features: int, dtype: str = "float32", max_length: int | None = None):
        if num_features < 1:
            raise ValueError(
                f"`num_features` must be positive. Received: num_features={num_features}."
            )
        self.item_shape, self.dtype = (num_features,), dtype
        self.max_length = max_length

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        if not isinstance(column, tf.RaggedTensor):
            column = tf.RaggedTensor.from_tensor(column, ragged_rank=1)
        features = column.flat_values if column.ragged_rank == 1 else column.values.to_tensor()
        if features.shape[-1] not in (None, *self.item_shape):
            raise ValueError(
                f"`column` must have frames of {self.item_shape[0]} features. "
                f"Received: frames of {features.shape[-1]}."
            )
        features = tf.ensure_shape(tf.cast(features, tf.float32), [None, *self.item_shape])
        return tf.RaggedTensor.from_row_splits(features, column.row_splits, validate=False)

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for sequences of finite numbers."""
        finite = tf.reduce_all(tf.math.is_finite(encoded.flat_values), axis=1)  # [frames]
        return tf.reduce_all(encoded.with_flat_values(finite), axis=1)

    def explain(self) -> str:  # noqa: D102
        return f"frames of {self.item_shape[0]} finite numbers"

    def identity(self) -> dict[str, Any]:  # noqa: D102
        own = {} if self.max_length is None else {"max_length": self.max_length}
        return {**super().identity(), "num_features": self.item_shape[0], **own}
