"""Sentence embeddings: an encoder, pooling over the tokens, and a vector of unit length."""

import keras

from keras_transformer.config import EmbedderConfig
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.embedding.head import PooledVector


@keras.saving.register_keras_serializable(package="keras_transformer")
class TextEmbedder(EncoderModel):
    """The encoder of Fig. 1, whose pooled output is a vector for the whole text.

    Args:
        config: An `EmbedderConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer, each text ending in `eos_id` and then padding.

    Returns:
        Vectors `[B, D]`, or `[B, N]` with `dimensions=N`; float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import EmbedderConfig, TextEmbedder
        >>> config = EmbedderConfig.preset("tiny", vocab_size=100, dimensions=32)
        >>> TextEmbedder(config)(np.ones((2, 7), "int32")).shape
        TensorShape([2, 32])

    Differs from the paper, which has no vectors of texts; the blocks, their dropout and the
    embedding are those of the paper (sections 3.1, 3.4, 3.5 and 5.4).

    Reference: Reimers and Gurevych (2019), Sentence-BERT, section 3.
    """

    config_class = EmbedderConfig
    input_class, head_class = EmbeddedTokens, PooledVector
    default_name = "embedder"
