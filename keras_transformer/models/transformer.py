"""The Transformer as one functional Keras model (Fig. 1)."""

from typing import Any

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.models.encoder_decoder import EncoderDecoderModel
from keras_transformer.models.inputs.tokens import EmbeddedTokens


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(EncoderDecoderModel):
    """The model of Fig. 1: embeddings, encoder, decoder and output weights.

    An ordinary functional model: `compile`, `fit`, `summary` and `save` work. The logits carry the
    mask of target tokens that are not padding, which Keras's losses and metrics apply. A copy for
    searches and exports is `Transformer.from_config(model.get_config())`; `clone_model` returns a
    plain functional model.

    Args:
        config: A `TransformerConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Dictionary of `"source"`, token ids `[B, S]`, and `"target"`, token ids `[B, T]`;
            integer. A source ends in `eos_id`, and a target begins with `bos_id`; both are followed
            by padding, `pad_id`.

    Returns:
        Logits `[B, T, V]` of the next token at each target position; float32 under mixed-precision
        policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> source, target = np.ones((2, 7), "int32"), np.ones((2, 5), "int32")
        >>> model({"source": source, "target": target}).shape
        TensorShape([2, 5, 100])

    Reference: Vaswani et al. (2017), section 3 and Fig. 1.
    """

    config_class = TransformerConfig
    default_name = "transformer"

    def make_input(self, config: Any, policy: Any, kernels: Any) -> EmbeddedTokens:  # noqa: D102
        name = "embedding" if config.head.tie == "all" else "source_embedding"
        return EmbeddedTokens(config, policy, kernels, side="source_", name=name)

    def shared_embedding(self, config: Any, source: Any) -> Any:  # noqa: D102
        return source.embedding if config.head.tie == "all" else None
