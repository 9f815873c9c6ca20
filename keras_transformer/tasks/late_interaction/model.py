"""Vectors of tokens: an encoder, a linear map, and a vector of unit length for each token."""

from typing import Any

import keras
from keras import ops

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.direction import SMALLEST
from keras_transformer.models.heads.head import Head, output_dtype
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.late_interaction.config import MultiVectorEncoderConfig
from keras_transformer.tasks.late_interaction.layers import TextMask
from keras_transformer.tensors import Shape, Tensor


class ExpandedTokens(EmbeddedTokens):
    """Token ids `[B, S]`, in which tokens that expand a query may follow its end."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        layers = super().make_layers(config, policy, kernels)
        if config.head.expansion == "unattended":
            tokens = config.input
            layers["mask"] = TextMask(tokens.pad_id, tokens.eos_id, name="mask")
        return layers


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenDirections(keras.Layer):
    """Scales the vectors of tokens to unit length, and those of padding to zero.

    Args:
        pad_id: Id of the padding token.

    Call arguments:
        x: `[B, S, N]`, floating.
        tokens: Token ids `[B, S]`, integer.

    Returns:
        `[B, S, N]`. A vector of zeros stays one.
    """

    def __init__(self, pad_id=0, **kwargs):
        super().__init__(**kwargs)
        self.pad_id = pad_id

    def call(self, x, tokens) -> Tensor:  # noqa: D102
        squares = ops.sum(ops.square(x), axis=-1, keepdims=True)  # [B, S, 1]
        x = x * ops.rsqrt(ops.maximum(squares, SMALLEST))
        real = ops.expand_dims(ops.not_equal(tokens, self.pad_id), 2)  # [B, S, 1]
        return ops.where(real, x, ops.zeros_like(x))

    def compute_output_shape(self, x_shape, tokens_shape=None) -> Shape:  # noqa: D102
        return x_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "pad_id": self.pad_id}


class TokenVectors(Head):
    """A linear map of the encoder's output to the vectors of tokens, in float32."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        head, dtype, layers = config.head, output_dtype(policy), {}
        if head.dimensions is not None:
            layers["token_projection"] = keras.layers.Dense(
                head.dimensions, use_bias=head.projection_bias, dtype=dtype, name="token_projection"
            )
        layers["vectors"] = TokenDirections(config.input.pad_id, dtype=dtype, name="vectors")
        return layers

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        *projections, directions = self.drawn
        for layer in projections:
            hidden = layer(hidden)  # [B, S, N]
        return directions(hidden, inputs)

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return tuple(self.layers.values())


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiVectorEncoder(EncoderModel):
    """The encoder of Fig. 1 with a vector for each token of a query or a passage.

    Args:
        config: A `MultiVectorEncoderConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer: each row is a query or a passage that ends in `eos_id`,
            then tokens that expand a query, then padding. See `InteractionRows`.

    Returns:
        Vectors `[B, S, N]` of unit length, zeros for padding; float32 under mixed-precision
        policies. With `dimensions=None` N is `d_model`.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import MultiVectorEncoder, MultiVectorEncoderConfig
        >>> config = MultiVectorEncoderConfig.preset("tiny", vocab_size=100, dimensions=32)
        >>> MultiVectorEncoder(config)(np.array([[2, 7, 8, 3]])).shape
        TensorShape([1, 4, 32])

    Differs from the paper, which has no vectors of texts; the blocks, their dropout and the
    embedding are those of the paper (sections 3.1, 3.4, 3.5 and 5.4).

    Reference: Khattab and Zaharia (2020), ColBERT, sections 3.1 and 3.2.
    """

    config_class = MultiVectorEncoderConfig
    input_class, head_class = ExpandedTokens, TokenVectors
    default_name = "multi_vector_encoder"
