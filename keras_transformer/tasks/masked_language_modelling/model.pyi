# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.vocabulary_encoder import VocabularyEncoder
from keras_transformer.tasks.masked_language_modelling.config import (
    MaskedLanguageModelConfig,
    MaskedLanguageModelOptions,
)

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
