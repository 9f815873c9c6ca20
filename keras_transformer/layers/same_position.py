"""A layer that reads another sequence at the same position, in place of cross-attention."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.call_checks import check_mask_of_positions
from keras_transformer.layers.masks import join_masks
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionReader(AttendingLayer):
    """A linear projection of another sequence at the same position; see `SamePosition`.

    Args:
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: `[B, T, D]`, floating. Only its shape matters.
        memory: The sequence that is read, `[B, S, D]`, floating. Its width may differ from that of
            `x`.
        attention_mask: Boolean `[B, 1, S]`, `False` for positions that are read as zeros, such as
            padding; B may be 1. `None`: no padding.
        return_attention_scores: Must be false: there is no attention.
        mask: Boolean `[B, T]`, passed on to the output. `None`: the mask that Keras attached to
            `x`, if any.
        memory_mask: Boolean `[B, S]`, combined with `attention_mask`. `None`: the mask that Keras
            attached to `memory`, if any.

    Returns:
        `[B, T, D]`; zeros at positions after the end of `memory`.

    Raises:
        ValueError: If `attention_mask` depends on the query position.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import PositionReader
        >>> x, memory = keras.random.normal((2, 5, 16)), keras.random.normal((2, 7, 16))
        >>> PositionReader()(x, memory).shape
        TensorShape([2, 5, 16])

    Reference: Kalchbrenner et al. (2016), sections 3.1 and 3.2.
    """

    keys_of = {"attention_mask": "memory", "mask": "x", "memory_mask": "memory"}
    without_memory = "`Mixing`"

    def build(
        self,
        x_shape: Shape,
        memory_shape: Shape,
        attention_mask_shape: Shape | None = None,
    ) -> None:  # noqa: D102
        self.check_shapes(x=x_shape, memory=memory_shape)
        self.value = keras.layers.Dense(
            x_shape[-1], use_bias=False, dtype=self.dtype_policy, name="value"
        )
        self.value.build((None, memory_shape[-1]))

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_mask_of_positions(given.get("attention_mask"), "attention_mask", self)
        return super().checked_arguments(given)

    def call(  # noqa: D102
        self,
        x: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        real = join_masks(attention_mask, memory_mask)  # [B, 1, S]
        places = ops.arange(ops.shape(x)[1])  # [T]
        return _at(self.project_memory(memory), places, real)

    def project_memory(self, memory: Tensor) -> tuple[Tensor]:
        """Returns the projection of `memory` `[B, S, D]` as a tuple of one tensor, `[B, S, D]`."""
        flat = self.kernels.dense(self.value, ops.reshape(memory, (-1, memory.shape[-1])))
        return (ops.reshape(flat, (*ops.shape(memory)[:2], flat.shape[-1])),)

    def step(
        self,
        x: Tensor,
        memory_heads: tuple[Tensor],
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        index: Tensor = 0,
    ) -> Tensor:
        """Reads one position, or several in a row.

        Args:
            x: The position in each of the N hypotheses of a sentence, `[B, N, D]`, or N positions.
            memory_heads: From `project_memory`.
            attention_mask: Boolean `[B, 1, S]`. `None`: no padding.
            return_attention_scores: Without effect: there are none.
            index: Index of the position, counted from 0: a scalar integer, or N integers.

        Returns:
            `[B, N, D]`, or `[B, 1, D]`, the same for all hypotheses.
        """
        return _at(memory_heads, ops.reshape(index, (-1,)), attention_mask)


def _at(values, places, real):
    """Returns rows of values `[B, S, D]` at places `[T]`, `[B, T, D]`; zeros where none is real."""
    (values,) = values
    length = ops.shape(values)[1]
    inside = ops.expand_dims(places < length, axis=0)  # [1, T]
    places = ops.minimum(places, length - 1)
    if real is not None:
        inside = ops.logical_and(inside, ops.take(ops.squeeze(real, axis=1), places, axis=1))
    rows = ops.take(values, places, axis=1)  # [B, T, D]
    return ops.where(ops.expand_dims(inside, axis=2), rows, ops.zeros_like(rows))
