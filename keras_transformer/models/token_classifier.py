"""Tokens to classes: an encoder and a linear map of each of its outputs."""

import keras

from keras_transformer.config import TokenClassifierConfig
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.masks import PaddingMask
from keras_transformer.models.base import make_embedding, make_logits
from keras_transformer.models.encoder_only import EncoderModel


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenClassifier(EncoderModel):
    """The encoder of Fig. 1 with a linear classifier over each of its outputs.

    Args:
        config: A `TokenClassifierConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.

    Call arguments:
        inputs: Token ids `[B, S]`, integer, each text ending in `eos_id`; padding comes after it.

    Returns:
        Logits `[B, S, C]`, one for each of `config.labels`; float32 under the mixed policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import TokenClassifier, TokenClassifierConfig
        >>> config = TokenClassifierConfig.preset("tiny", vocab_size=100, labels=("O", "B-X"))
        >>> TokenClassifier(config)(np.ones((2, 7), "int32")).shape
        TensorShape([2, 7, 2])

    Differs from the paper: it has no classifier; the blocks, their dropout and the embedding are
    the paper's (sections 3.1, 3.4, 3.5 and 5.4).
    """

    config_class = TokenClassifierConfig

    def __init__(self, config="base", dtype=None, name="token_classifier", **kwargs):
        super().__init__(config, dtype, name, **kwargs)

    def _make_layers(self, config, policy, kernels):
        block = {**config.block.to_dict(), "dtype": policy, "kernels": kernels}
        return {
            "mask": PaddingMask(config.pad_id, name="mask"),
            "embedding": make_embedding(config, config.vocab_size, policy, kernels, "embedding"),
            "encoder": Encoder(config.num_layers, **block, name="encoder"),
            "dropout": Dropout(config.dropout, dtype=policy, name="dropout"),
            "output_layer": keras.layers.Dense(config.num_labels, dtype=policy, name="output"),
            "logits": make_logits(policy),
        }

    def _connect(self, layers, inputs):
        allowed = layers["mask"](inputs)  # [B, 1, S]
        x = layers["encoder"](layers["embedding"](inputs), allowed)  # [B, S, D]
        return layers["logits"](layers["output_layer"](layers["dropout"](x)))  # [B, S, C]

    @property
    def head(self):  # noqa: D102
        return self.output_layer, self.logits
