# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.tasks.classification.config import ClassifierConfig, ClassifierOptions

class TextClassifier(EncoderModel):
    def __init__(
        self,
        config: ClassifierConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[ClassifierOptions],
    ) -> None: ...
