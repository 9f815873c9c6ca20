# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.tasks.arithmetic.config import CalculatorConfig, CalculatorOptions
from keras_transformer.tensors import Tensor

class EmbeddedSymbols(ModelInput):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def symbol(self) -> Tensor: ...
    def check(self, inputs, model) -> None: ...
    def padding_mask(self, inputs) -> Tensor | None: ...
    def __call__(self, inputs, training=None) -> Tensor: ...

class DigitLogits(Head):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...

class Calculator(EncoderModel):
    def __init__(
        self,
        config: CalculatorConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[CalculatorOptions],
    ) -> None: ...
    def make_encoder(self, stack: Any, policy: Any, kernels: Any) -> Any: ...
