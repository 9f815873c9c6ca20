"""Token classification: an encoder and a linear classifier of each token."""

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import LinearHead, with_mask
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.token_classification.config import TokenClassifierConfig
from keras_transformer.tensors import Tensor


class TokenLabelLogits(LinearHead):
    """Linear classifier of each token."""

    def units(self, config) -> int:  # noqa: D102
        return config.head.num_labels

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        return with_mask(self.classified(hidden), inputs, self.config)  # [B, S, C]


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenClassifier(EncoderModel):
    """The encoder of Fig. 1 with a linear classifier of each token.

    Args:
        config: A `TokenClassifierConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer, each text ending in `eos_id` and then padding.

    Returns:
        Logits `[B, S, C]`, one for each of `config.head.labels`;
        float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import TokenClassifier, TokenClassifierConfig
        >>> config = TokenClassifierConfig.preset("tiny", vocab_size=100, labels=("O", "B-X"))
        >>> TokenClassifier(config)(np.ones((2, 7), "int32")).shape
        TensorShape([2, 7, 2])

    Differs from the paper, which has no classifier; the blocks, their dropout and the embedding are
    those of the paper (sections 3.1, 3.4, 3.5 and 5.4).
    """

    config_class = TokenClassifierConfig
    input_class, head_class = EmbeddedTokens, TokenLabelLogits
    default_name = "token_classifier"
