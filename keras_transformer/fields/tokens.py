"""Text, encoded as token ids."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor

COMPACT = 2**16  # size of the largest vocabulary whose ids fit into 2 bytes


class Tokens(Field):
    """Strings, encoded as token ids, including those that begin and end a text.

    Args:
        tokenizer: A `Tokenizer`.

    Call arguments of `encode`:
        column: UTF-8 strings, `[B]`.

    Returns of `encode`:
        A `tf.RaggedTensor` `[B, (T)]`, int32.
    """

    is_ragged = True

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self.dtype = "uint16" if tokenizer.vocab_size <= COMPACT else "int32"
        self.padding = tokenizer.pad_id

    @property
    def min_length(self) -> int:
        """One token, plus the ids that mark the beginning and the end."""
        return self.tokenizer.num_marks + 1

    def encode(self, column: Tensor) -> Tensor:  # noqa: D102
        return self.tokenizer.encode(column)

    def truncate(self, encoded: Any, max_length: int) -> Tensor:
        """Truncates texts to `max_length` tokens and keeps the end token: see `Field.truncate`."""
        beginnings = encoded[:, : max_length - 1]
        longer = encoded.row_lengths() > beginnings.row_lengths()
        ends = tf.gather(encoded.flat_values, tf.boolean_mask(encoded.row_limits() - 1, longer))
        ends = tf.RaggedTensor.from_row_lengths(ends, tf.cast(longer, tf.int64))
        return tf.concat([beginnings, ends], axis=1)

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "tokenizer": self.tokenizer.identity()}

    def files(self) -> dict[str, bytes]:  # noqa: D102
        return self.tokenizer.files()
