"""Sentence embeddings: an encoder, pooling over the tokens, and a vector of unit length."""

from typing import Any

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.direction import Direction
from keras_transformer.models.heads.head import Head, output_dtype
from keras_transformer.models.heads.pooling import Pooling
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.embedding.config import AFTER_POOLING, EmbedderConfig
from keras_transformer.tensors import Tensor


class PooledVector(Head):
    """Pooling over the encoder's output and the layers after it, in float32 from there on."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        head, dtype, width = config.head, output_dtype(policy), config.encoder.d_model
        layers = {"pooling": Pooling(head.pooling, dtype=policy, name="pooling")}
        for number, module in enumerate(head.after_pooling):
            name = f"{AFTER_POOLING}_{number}"
            layers[name] = module.layer(width, dtype, name)
            width = module.width(width)
        layers["vector"] = Direction(head.dimensions, head.normalize, dtype=dtype, name="vector")
        return layers

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        pooling, *others = self.drawn
        x = pooling(hidden) if padding_mask is None else pooling(hidden, padding_mask)  # [B, D]
        for layer in others:
            x = layer(x)
        return x  # [B, N]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return tuple(self.layers.values())


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
        Vectors `[B, D]`, or `[B, N]` with `dimensions=N` or layers after pooling that have N
        outputs; float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import EmbedderConfig, TextEmbedder
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

    def encoder_of(self, config: Any, policy: Any, kernels: Any) -> Any:  # noqa: D102
        return self.make_encoder(config.encoder, policy, kernels, causal=config.head.causal)
