# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import LinearHead
from keras_transformer.tasks.token_classification.config import (
    TokenClassifierConfig,
    TokenClassifierOptions,
)
from keras_transformer.tensors import Tensor

class TokenLabelLogits(LinearHead):
    def units(self, config) -> int: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...

class TokenClassifier(EncoderModel):
    def __init__(
        self,
        config: TokenClassifierConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[TokenClassifierOptions],
    ) -> None: ...
