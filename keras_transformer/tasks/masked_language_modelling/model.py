"""Masked language model: an encoder that predicts tokens hidden by masks."""

import keras

from keras_transformer.models.vocabulary_encoder import VocabularyEncoder
from keras_transformer.tasks.masked_language_modelling.config import MaskedLanguageModelConfig


@keras.saving.register_keras_serializable(package="keras_transformer")
class MaskedLanguageModel(VocabularyEncoder):
    """The encoder of Fig. 1 with logits of the vocabulary at each position.

    Args:
        config: A `MaskedLanguageModelConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer, each text ending in `eos_id` and then padding. Masks
            hide some of its tokens.

    Returns:
        Logits `[B, S, V]` of the token at each position; float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import MaskedLanguageModel, MaskedLanguageModelConfig
        >>> config = MaskedLanguageModelConfig.preset("tiny", vocab_size=100)
        >>> MaskedLanguageModel(config)(np.ones((2, 7), "int32")).shape
        TensorShape([2, 7, 100])

    Reference: Devlin et al. (2019), BERT, section 3.1.

    Differs from the paper, which has no masks; the blocks, their dropout and the embedding are
    those of the paper (sections 3.1, 3.4, 3.5 and 5.4).
    """

    config_class = MaskedLanguageModelConfig
    default_name = "masked_language_model"
