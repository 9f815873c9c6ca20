# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.heads.vocabulary import VocabularyLogits
from keras_transformer.models.vocabulary_encoder import VocabularyEncoder
from keras_transformer.tasks.sparse_embedding.config import (
    SparseEmbedderConfig,
    SparseEmbedderOptions,
)
from keras_transformer.tensors import Tensor

class SparseWeights(VocabularyLogits):
    def make_layers(self, config, policy, kernels, embedding) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...
    @property
    def drawn(self) -> tuple[keras.Layer, ...]: ...

class SparseTextEmbedder(VocabularyEncoder):
    def __init__(
        self,
        config: SparseEmbedderConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[SparseEmbedderOptions],
    ) -> None: ...
