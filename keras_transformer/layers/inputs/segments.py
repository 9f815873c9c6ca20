"""Segment embeddings, which distinguish the two texts of an input."""

from typing import Any

import keras
from keras import ops

from keras_transformer.tensors import Tensor


def separator_of(tokens) -> tuple[int | None, bool]:
    """Returns the id that separates two texts, and whether it belongs to the first one.

    Args:
        tokens: A `TokenInput` with segments.
    """
    if tokens.segments == "first":
        return None, False
    after = tokens.segments == "after_eos"
    return (tokens.eos_id if after else tokens.bos_id), after


def second_text(tokens, separator_id, after=False) -> Tensor:
    """Returns the mask of the tokens of the second text and of padding, boolean `[B, S]`.

    Args:
        tokens: Token ids `[B, S]`, integer.
        separator_id, after: See `Segments`.
    """
    if separator_id is None:
        return ops.zeros_like(tokens, dtype="bool")
    second = after_separator(tokens, separator_id)  # [B, S]
    if after:
        second = ops.pad(second[:, :-1], ((0, 0), (1, 0)))  # without the separator
    return second


def after_separator(tokens, separator_id) -> Tensor:
    """Returns the mask of the first separator and all tokens after it, boolean `[B, S]`."""
    return ops.cumsum(ops.cast(ops.equal(tokens, separator_id), "int32"), axis=1) > 0


@keras.saving.register_keras_serializable(package="keras_transformer")
class Segments(keras.layers.Layer):
    """Adds one learned vector to every token of the first text, and another to all later tokens.

    Args:
        separator_id: Id of the token that separates the texts. `None`: all tokens belong to the
            first text.
        after: Whether the separator belongs to the first text instead of the second.

    Call arguments:
        x: `[B, S, D]`, floating.
        tokens: Token ids `[B, S]`, integer, which contain the separator.

    Returns:
        `[B, S, D]`.

    Reference: Devlin et al. (2019), section 3, "segment embedding".
    """

    def __init__(self, separator_id, after=False, **kwargs):
        super().__init__(**kwargs)
        self.separator_id, self.after = separator_id, after

    def build(self, x_shape, tokens_shape=None) -> None:  # noqa: D102
        self.table = self.add_weight(
            shape=(2, x_shape[-1]), initializer=keras.initializers.RandomNormal(), name="table"
        )

    def call(self, x, tokens) -> Tensor:  # noqa: D102
        table = ops.cast(self.table, x.dtype)
        if self.separator_id is None:
            return x + table[0]
        second = second_text(tokens, self.separator_id, self.after)
        second = ops.expand_dims(second, 2)  # [B, S, 1]
        return x + ops.where(second, table[1], table[0])

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        own = {"separator_id": self.separator_id, "after": self.after}
        return {**super().get_config(), **own}
