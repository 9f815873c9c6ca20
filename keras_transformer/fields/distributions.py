"""Distributions over a vocabulary, one for each token of a text, by their most probable tokens."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.fields.tokens import COMPACT
from keras_transformer.tensors import Tensor


class _Rows(Field):
    """Rows of K numbers, one row for each token of a text.

    Args:
        k: Number of numbers in a row.
        dtype: NumPy name of their dtype.

    Call arguments of `encode`:
        column: The bytes of arrays `[T, K]` of the dtype, strings `[B]`.

    Returns of `encode`:
        A `tf.RaggedTensor` `[B, (T), K]`.
    """

    is_ragged = True

    def __init__(self, k: int, dtype: str):
        self.item_shape, self.dtype = (k,), dtype

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        dtype = tf.as_dtype(self.dtype)
        values = tf.io.decode_raw(tf.strings.reduce_join(column), dtype)
        rows = tf.reshape(values, [-1, *self.item_shape])  # [tokens, K]
        size = self.item_shape[0] * dtype.size
        lengths = tf.cast(tf.strings.length(column) // size, tf.int64)
        return tf.RaggedTensor.from_row_lengths(rows, lengths, validate=False)

    def _every(self, encoded, valid):
        """Returns true for texts with at least one row whose rows `[tokens, K]` are all valid."""
        rows = encoded.with_flat_values(tf.reduce_all(valid, axis=1))
        return tf.reduce_all(rows, axis=1) & (encoded.row_lengths() > 0)

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "k": self.item_shape[0]}


class RankedTokens(_Rows):
    """The K most probable tokens at each position; see `_Rows` for arguments and results.

    Args:
        k: Number K of tokens.
        vocab_size: Size of the vocabulary.
    """

    def __init__(self, k: int, vocab_size: int):
        super().__init__(k, "uint16" if vocab_size <= COMPACT else "int32")
        self.vocab_size = vocab_size

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for texts whose tokens are all in the vocabulary."""
        ids = tf.cast(encoded.flat_values, tf.int32)
        return self._every(encoded, (ids >= 0) & (ids < self.vocab_size))

    def explain(self) -> str:  # noqa: D102
        return "tokens that a teacher predicts for this example"


class RankedProbabilities(_Rows):
    """Probabilities of the K most probable tokens; see `_Rows` for arguments and results.

    Args:
        k: Number K of tokens.
    """

    padding = 0.0

    def __init__(self, k: int):
        super().__init__(k, "float16")

    def is_valid(self, encoded: Any) -> Tensor | None:
        """Returns a boolean `[B]`, true for texts whose numbers are all from 0 to 1."""
        values = encoded.flat_values
        return self._every(encoded, (values >= 0) & (values <= 1))  # false for NaN

    def explain(self) -> str:  # noqa: D102
        return "probabilities from 0 to 1"
