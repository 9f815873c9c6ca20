"""The input of models that read images: their patches, embedded."""

from typing import Any

import keras

from keras_transformer.layers.inputs.patches import PatchEmbedding, check_images
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.positions import Sinusoidal, SinusoidalGrid
from keras_transformer.tensors import Tensor


class EmbeddedPatches(ModelInput):
    """Rescales pixels `[B, height, width, channels]` and embeds their patches."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        stack = config.encoder
        return {
            # Maps 0 .. 255 to -1 .. 1.
            "rescaling": keras.layers.Rescaling(1 / 127.5, -1.0, dtype=policy, name="rescaling"),
            "embedding": PatchEmbedding(
                config.input.patch_size,
                stack.d_model,
                _position(stack),
                config.leading_tokens,
                stack.embedding_dropout,
                dtype=policy,
                kernels=kernels,
                name="embedding",
            ),
        }

    def symbol(self) -> Tensor:  # noqa: D102
        return keras.Input(self.config.input.shape, dtype="float32", name="images")

    def check(self, inputs, model) -> None:  # noqa: D102
        check_images(inputs, "images", model, self.config.input.shape)

    def __call__(self, inputs, training=None) -> Tensor:  # noqa: D102
        pixels = self.layers["rescaling"](inputs)
        return self.layers["embedding"](pixels, training=training)  # [B, leading_tokens + P, D]


def _position(stack):
    """Returns the `Position` of the embedding; positions in attention belong to the blocks."""
    position = stack.embedded_position
    if isinstance(position, Sinusoidal):
        return SinusoidalGrid(**position.get_config())
    return position
