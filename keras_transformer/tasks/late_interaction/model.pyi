# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.late_interaction.config import (
    MultiVectorEncoderConfig,
    MultiVectorEncoderOptions,
)
from keras_transformer.tensors import Shape, Tensor

class ExpandedTokens(EmbeddedTokens):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...

class TokenDirections(keras.Layer):
    pad_id: Any
    def __init__(self, pad_id=0, **kwargs): ...
    def call(self, x, tokens) -> Tensor: ...
    def compute_output_shape(self, x_shape, tokens_shape=None) -> Shape: ...
    def get_config(self) -> dict[str, Any]: ...

class TokenVectors(Head):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...
    @property
    def drawn(self) -> tuple[keras.Layer, ...]: ...

class MultiVectorEncoder(EncoderModel):
    def __init__(
        self,
        config: MultiVectorEncoderConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[MultiVectorEncoderOptions],
    ) -> None: ...
