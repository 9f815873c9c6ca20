"""The mask of extended queries."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.inputs.segments import second_text
from keras_transformer.layers.masks import PaddingMask, padding_mask
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class TextMask(PaddingMask):
    """Mask of the tokens up to the first `eos_id`, so that no position attends to an expansion.

    It has a row for each position, all alike. A mask `[B, 1, S]` would state which tokens are
    padding, whose states exports do not compute; but those of an expansion are needed.

    Args:
        pad_id: Id of the padding token.
        eos_id: Id of the token that ends a text.

    Call arguments:
        tokens: Token ids `[B, S]`, integer.

    Returns:
        Boolean `[B, S, S]`.
    """

    def __init__(self, pad_id=0, eos_id=3, **kwargs):
        super().__init__(pad_id, **kwargs)
        self.eos_id = eos_id

    def call(self, tokens) -> Tensor:  # noqa: D102
        after = ops.expand_dims(second_text(tokens, self.eos_id, after=True), 1)  # [B, 1, S]
        attended = ops.logical_and(padding_mask(tokens, self.pad_id), ops.logical_not(after))
        every = ops.ones_like(ops.expand_dims(tokens, 2), dtype="bool")  # [B, S, 1]
        return ops.logical_and(every, attended)

    def compute_output_shape(self, tokens_shape) -> Shape:  # noqa: D102
        batch, length = tokens_shape
        return batch, length, length

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "eos_id": self.eos_id}
