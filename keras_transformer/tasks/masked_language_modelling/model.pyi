# Written by `make stubs`. Options are declared in the configurations, each once.

from collections.abc import Callable
from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.vocabulary_encoder import VocabularyEncoder
from keras_transformer.tasks.masked_language_modelling.config import (
    MaskedLanguageModelConfig,
    MaskedLanguageModelOptions,
)
from keras_transformer.tensors import Tensor

class MaskedLanguageModel(VocabularyEncoder):
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
    def hidden_states(
        self,
        inputs: Tensor,
        training: bool | None = None,
        cutoff: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor: ...
