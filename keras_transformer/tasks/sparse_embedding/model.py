"""Sparse vectors of texts: an encoder, logits of the vocabulary, and pooling over the tokens."""

from typing import Any

import keras

from keras_transformer.models.heads.head import output_dtype
from keras_transformer.models.heads.vocabulary import VocabularyLogits
from keras_transformer.models.vocabulary_encoder import VocabularyEncoder
from keras_transformer.tasks.sparse_embedding.config import SparseEmbedderConfig
from keras_transformer.tasks.sparse_embedding.layers import SparsePooling
from keras_transformer.tensors import Tensor


class SparseWeights(VocabularyLogits):
    """Logits of the vocabulary at each position, pooled over the tokens of a text."""

    def make_layers(self, config, policy, kernels, embedding) -> dict[str, Any]:  # noqa: D102
        head = config.head
        layers = super().make_layers(config, policy, kernels, embedding)
        dtype = output_dtype(policy)
        pooling = SparsePooling(head.pooling, head.saturation, dtype=dtype, name="vector")
        return {**layers, "vector": pooling}

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        logits = self.weights.project(self.before_weights(hidden))  # [B, S, V]
        pooling = self.layers["vector"]
        return pooling(logits) if padding_mask is None else pooling(logits, padding_mask)  # [B, V]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return *super().drawn, self.layers["vector"]


@keras.saving.register_keras_serializable(package="keras_transformer")
class SparseTextEmbedder(VocabularyEncoder):
    """The encoder of Fig. 1 with a weight for each token of the vocabulary: SPLADE.

    Args:
        config: A `SparseEmbedderConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer, each text ending in `eos_id` and then padding.

    Returns:
        Weights `[B, V]`, at least 0 and mostly 0 in a trained model; float32 under mixed-precision
        policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import SparseEmbedderConfig, SparseTextEmbedder
        >>> config = SparseEmbedderConfig.preset("tiny", vocab_size=100)
        >>> SparseTextEmbedder(config)(np.ones((2, 7), "int32")).shape
        TensorShape([2, 100])

    Reference: Formal et al. (2021), "SPLADE v2", section 3.

    Differs from the paper, which has no vectors of texts; the blocks, their dropout and the
    embedding are those of the paper (sections 3.1, 3.4, 3.5 and 5.4).
    """

    config_class = SparseEmbedderConfig
    head_class = SparseWeights
    default_name = "sparse_embedder"
