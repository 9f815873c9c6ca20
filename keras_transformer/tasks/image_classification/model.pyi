# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.labels import LabelLogits
from keras_transformer.tasks.image_classification.config import (
    ImageClassifierConfig,
    ImageClassifierOptions,
)
from keras_transformer.tensors import Tensor

class ImageLabelLogits(LabelLogits):
    def make_pooling(self, config, policy) -> keras.Layer: ...
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...

class ImageClassifier(EncoderModel):
    def __init__(
        self,
        config: ImageClassifierConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[ImageClassifierOptions],
    ) -> None: ...
