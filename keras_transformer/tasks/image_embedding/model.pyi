# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.tasks.embedding.model import PooledVector
from keras_transformer.tasks.image_embedding.config import ImageEmbedderConfig, ImageEmbedderOptions

class ImageVector(PooledVector):
    def make_pooling(self, config, policy) -> keras.Layer: ...

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
