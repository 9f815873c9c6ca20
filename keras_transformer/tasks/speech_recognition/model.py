"""The Transformer whose source is speech: frames, an encoder and a decoder of text."""

from typing import Any

import keras

from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.models.transformer import EncoderDecoderModel
from keras_transformer.tasks.speech_recognition.config import SpeechTransformerConfig
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

    def padding_mask(self, inputs) -> Tensor:  # noqa: D102
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
        padding_mask = self.layers["frame_mask"](inputs)  # [B, 1, S]
        return self.layers["source_embedding"](inputs, padding_mask, training=training)


@keras.saving.register_keras_serializable(package="keras_transformer")
class SpeechTransformer(EncoderDecoderModel):
    """The encoder-decoder of Fig. 1 from frames of sound to text.

    Args:
        config: A `SpeechTransformerConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Dictionary of `"source"`, frames `[B, S, F]`, floating, such as those of a `LogMel`;
            and `"target"`, token ids `[B, T]`, integer. Frames of zeros after the end of a
            recording are padding. A target begins with `bos_id` and is followed by `pad_id`.

    Returns:
        Logits `[B, T, V]` of the next token at each target position; float32 under mixed-precision
        policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import SpeechTransformer, SpeechTransformerConfig
        >>> model = SpeechTransformer(SpeechTransformerConfig.preset("tiny", vocab_size=100))
        >>> source, target = np.ones((2, 70, 80), "float32"), np.ones((2, 5), "int32")
        >>> model({"source": source, "target": target}).shape
        TensorShape([2, 5, 100])

    Differs from the paper, whose sources are tokens: two convolutions over the frames replace the
    embedding (Dong et al., 2018; Radford et al., 2022).

    Reference: Radford et al. (2022), "Robust Speech Recognition via Large-Scale Weak Supervision",
        section 2.2.
    """

    config_class = SpeechTransformerConfig
    default_name = "speech_transformer"

    def make_input(self, config: Any, policy: Any, kernels: Any) -> EmbeddedFrames:  # noqa: D102
        return EmbeddedFrames(config, policy, kernels)
