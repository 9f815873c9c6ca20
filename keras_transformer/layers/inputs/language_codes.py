"""Order in which an encoder reads the token of a source's language."""

from typing import Any

import keras
from keras import ops

from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class LanguageCodes(keras.layers.Layer):
    """Removes the target's language from token ids, and moves the source's to its place.

    Args:
        place: `"before"` the text, or `"after"` its end.
        pad_id: Token id of padding.

    Call arguments:
        tokens: Token ids `[B, S]`: the target's language, the source's language, the text and its
            end, and padding.

    Returns:
        Token ids `[B, S]` as the encoder reads them, with one more id of padding.
    """

    def __init__(self, place: str, pad_id: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.autocast = False  # casting floating ids would round them
        self.place, self.pad_id = place, pad_id

    def call(self, tokens: Tensor) -> Tensor:  # noqa: D102
        rest = self._without_first(tokens)  # [B, S]
        if self.place == "before":
            return rest
        text = self._without_first(rest)  # [B, S]
        real = ops.cast(ops.not_equal(text, self.pad_id), "int32")
        end = ops.sum(real, axis=1, keepdims=True)  # [B, 1]
        return ops.where(ops.equal(ops.arange(ops.shape(text)[1]), end), rest[:, :1], text)

    def _without_first(self, tokens):
        return ops.pad(tokens[:, 1:], [[0, 0], [0, 1]], constant_values=self.pad_id)

    def compute_output_shape(self, tokens_shape: Shape) -> Shape:  # noqa: D102
        return tokens_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "place": self.place, "pad_id": self.pad_id}
