# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head
from keras_transformer.tasks.embedding.config import EmbedderConfig, EmbedderOptions
from keras_transformer.tensors import Tensor

class PooledVector(Head):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...
    @property
    def drawn(self) -> tuple[keras.Layer, ...]: ...

class TextEmbedder(EncoderModel):
    def __init__(
        self,
        config: EmbedderConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[EmbedderOptions],
    ) -> None: ...
    def encoder_of(self, config: Any, policy: Any, kernels: Any) -> Any: ...
