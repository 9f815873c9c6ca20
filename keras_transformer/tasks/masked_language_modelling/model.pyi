# Written by `make stubs`. Options are declared in the configurations, each once.

from collections.abc import Callable
from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.next_token import NextTokenLogits
from keras_transformer.models.model import TokenOutput
from keras_transformer.tasks.masked_language_modelling.config import (
    MaskedLanguageModelConfig,
    MaskedLanguageModelOptions,
)
from keras_transformer.tensors import Tensor

class MaskedTokenLogits(NextTokenLogits):
    def make_layers(self, config, policy, kernels, embedding) -> dict[str, Any]: ...
    def before_weights(self, hidden) -> Tensor: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...
    @property
    def drawn(self) -> tuple[keras.Layer, ...]: ...

class MaskedLanguageModel(TokenOutput, EncoderModel):
    def __init__(
        self,
        config: MaskedLanguageModelConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[MaskedLanguageModelOptions],
    ) -> None: ...
    @classmethod
    def make_head(cls, config: Any, policy: Any, kernels: Any, embeddings: Any = ()) -> Any: ...
    def hidden_states(
        self,
        inputs: Tensor,
        training: bool | None = None,
        cutoff: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor: ...
