# Written by `make stubs`. Options are declared in the configurations, each once.

from collections.abc import Callable
from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.model import ConfiguredModel, FigureColumn, Prediction, TokenOutput
from keras_transformer.models.parts import Parts
from keras_transformer.tasks.language_modelling.config import (
    LanguageModelConfig,
    LanguageModelOptions,
)
from keras_transformer.tensors import Tensor

class LanguageModel(TokenOutput, ConfiguredModel):
    def __init__(
        self,
        config: LanguageModelConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[LanguageModelOptions],
    ) -> None: ...
    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor: ...
    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts: ...
    def roles(self, parts: Any) -> dict[str, Any]: ...
    def connect(self, parts: Any, inputs: Any) -> Tensor: ...
    def hidden_states(
        self,
        inputs: Tensor | dict[str, Tensor],
        training: bool | None = None,
        cutoff: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor: ...
    def read(
        self, tokens: Tensor, count: Tensor | None = None
    ) -> tuple[tuple[Tensor, ...], ...]: ...
    def read_more(
        self, tokens: Tensor, past: tuple, start: Tensor | None = None
    ) -> tuple[Tensor, tuple]: ...
    def step(
        self,
        tokens: Tensor,
        cache: tuple,
        index: Tensor,
        attention_mask: Tensor | None = None,
        slot: Tensor | None = None,
    ) -> Prediction: ...
    def step_of_rows(
        self, tokens: Tensor, cache: tuple, counts: Tensor, slot: Tensor
    ) -> Prediction: ...
    @property
    def columns(self) -> tuple[FigureColumn, ...]: ...
    def attention_weights(self, inputs: Tensor) -> dict[str, Tensor]: ...
