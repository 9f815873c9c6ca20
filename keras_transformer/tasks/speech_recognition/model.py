"""The Transformer whose source is speech: frames, an encoder and a decoder of text."""

from typing import Any

import keras

from keras_transformer.models.encoder_decoder import EncoderDecoderModel
from keras_transformer.tasks.speech_recognition.config import SpeechTransformerConfig
from keras_transformer.tasks.speech_recognition.input import EmbeddedFrames


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
        >>> from keras_transformer import SpeechTransformer, SpeechTransformerConfig
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
