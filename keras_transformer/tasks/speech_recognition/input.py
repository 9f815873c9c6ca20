"""Frames of sound as the input of a model: their mask, and their embedding by convolutions."""

from typing import Any

import keras

from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.tasks.speech_recognition.layers import (
    FrameEmbedding,
    FrameMask,
    check_frames,
)
from keras_transformer.tensors import Tensor


class EmbeddedFrames(ModelInput):
    """Embeds frames `[B, S, F]`; frames of zeros are padding."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        speech, stack = config.input, config.encoder
        masked = not speech.pad_to_max_seconds
        return {
            # In float32: a feature may be so small that it is 0 in 16 bits.
            "frame_mask": FrameMask(1, masked, dtype="float32", name="frame_mask"),
            "source_mask": FrameMask(
                speech.conv_stride, masked, dtype="float32", name="source_mask"
            ),
            "source_embedding": FrameEmbedding(
                stack.d_model,
                speech.kernel_size,
                speech.conv_stride,
                speech.conv_activation,
                stack.embedded_position,
                stack.max_length,
                stack.embedding_dropout,
                dtype=policy,
                kernels=kernels,
                name="source_embedding",
            ),
        }

    @property
    def roles(self) -> dict[str, Any]:  # noqa: D102
        return {name.removeprefix("source_"): layer for name, layer in self.layers.items()}

    def symbol(self) -> Tensor:  # noqa: D102
        features = self.config.input.num_mel_filters
        return keras.Input((None, features), dtype="float32", name="source")

    def check(self, inputs, model) -> None:  # noqa: D102
        check_frames(inputs, "source", model, self.config.input.num_mel_filters)

    def positions(self, inputs) -> Tensor:  # noqa: D102
        return -(-super().positions(inputs) // self.config.input.conv_stride)

    def allowed(self, inputs) -> Tensor:  # noqa: D102
        return self.layers["source_mask"](inputs)

    def __call__(self, inputs, training=None, cutoff=None) -> Tensor:
        """Returns the input of the first stack, `[B, S', D]`.

        Args:
            inputs: Frames `[B, S, F]`.
            training: Whether dropout is active.
            cutoff: Must be `None`: frames have no token that could be cut off.
        """
        if cutoff is not None:
            raise ValueError("`cutoff` must be None for frames, which are not tokens.")
        allowed = self.layers["frame_mask"](inputs)  # [B, 1, S]
        return self.layers["source_embedding"](inputs, allowed, training=training)
