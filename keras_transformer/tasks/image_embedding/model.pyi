# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head
from keras_transformer.tasks.image_embedding.config import ImageEmbedderConfig, ImageEmbedderOptions
from keras_transformer.tensors import Tensor

class PooledImage(Head):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...
    @property
    def drawn(self) -> tuple[keras.Layer, ...]: ...

class ImageEmbedder(EncoderModel):
    def __init__(
        self,
        config: ImageEmbedderConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[ImageEmbedderOptions],
    ) -> None: ...
