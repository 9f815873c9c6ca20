"""Sentence embeddings: an encoder, pooling over the tokens, and a vector of unit length."""

from typing import Any

import keras
from keras import ops

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head, output_dtype
from keras_transformer.models.heads.pooling import Pooling
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.embedding.config import EmbedderConfig
from keras_transformer.tensors import Shape, Tensor

SMALLEST = 1e-24  # of a squared length, so that a vector of zeros stays one


@keras.saving.register_keras_serializable(package="keras_transformer")
class Direction(keras.Layer):
    """The first features of vectors, optionally scaled to unit length.

    Args:
        dimensions: Number of features N. `None`: all.
        normalize: Whether to divide by the Euclidean length.

    Call arguments:
        x: `[B, D]`, floating.

    Returns:
        `[B, N]`. A vector of zeros stays one.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.tasks.embedding.model import Direction
        >>> x = np.array([[3.0, 4.0, 9.0]], "float32")
        >>> [f"{value:.2f}" for value in Direction(dimensions=2)(x).numpy()[0]]
        ['0.60', '0.80']
    """

    def __init__(self, dimensions=None, normalize=True, **kwargs):
        super().__init__(**kwargs)
        self.dimensions, self.normalize = dimensions, normalize

    def call(self, x) -> Tensor:  # noqa: D102
        if self.dimensions is not None:
            x = x[:, : self.dimensions]  # [B, N]
        if not self.normalize:
            return x
        squares = ops.sum(ops.square(x), axis=1, keepdims=True)  # [B, 1]
        return x * ops.rsqrt(ops.maximum(squares, SMALLEST))

    def compute_output_shape(self, x_shape) -> Shape:  # noqa: D102
        width = x_shape[-1] if self.dimensions is None else self.dimensions
        return x_shape[0], width

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        own = {"dimensions": self.dimensions, "normalize": self.normalize}
        return {**super().get_config(), **own}


class PooledVector(Head):
    """Pooling over the encoder's output, in float32 from there on."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        dtype = output_dtype(policy)
        return {
            "pooling": Pooling(config.head.pooling, dtype=policy, name="pooling"),
            "vector": Direction(
                config.head.dimensions, config.head.normalize, dtype=dtype, name="vector"
            ),
        }

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        pooling = self.layers["pooling"]
        x = pooling(hidden) if padding_mask is None else pooling(hidden, padding_mask)  # [B, D]
        return self.layers["vector"](x)  # [B, N]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return self.layers["pooling"], self.layers["vector"]


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
