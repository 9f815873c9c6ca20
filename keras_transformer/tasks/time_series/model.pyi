# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import LinearHead
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.tasks.time_series.config import SeriesConfig, SeriesOptions
from keras_transformer.tensors import Tensor

class ScaledSteps(ModelInput):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def symbol(self) -> Tensor: ...
    def check(self, inputs, model) -> None: ...
    def __call__(self, inputs, training=None) -> Tensor: ...

class RecurrentEncoder:
    roles: Any
    recurrent: Any
    def __init__(self, config, policy, kernels): ...
    def __call__(self, x) -> Tensor: ...

class Number(LinearHead):
    def units(self, config) -> int: ...
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...

class SeriesRegressor(EncoderModel):
    widths: Any
    def __init__(
        self,
        config: SeriesConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[SeriesOptions],
    ) -> None: ...
    def make_encoder(self, stack: Any, policy: Any, kernels: Any) -> Any: ...
