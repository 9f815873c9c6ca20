# Written by `make stubs`. Options are declared in the configurations, each once.

from collections.abc import Callable
from typing import Any, Unpack

from keras_transformer.config.transformer import TransformerConfig, TransformerOptions
from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.model import ConfiguredModel, FigureColumn, Prediction, TokenOutput
from keras_transformer.models.parts import Parts
from keras_transformer.tensors import Tensor

class EncoderDecoderModel(TokenOutput, ConfiguredModel):
    def make_input(self, config: Any, policy: Any, kernels: Any) -> Any: ...
    def shared_embedding(self, config: Any, source: Any) -> Any: ...
    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts: ...
    def roles(self, parts: Any) -> dict[str, Any]: ...
    def symbols(self, parts: Any) -> dict[str, Any]: ...
    def connect(self, parts: Any, inputs: Any) -> Tensor: ...
    def check_inputs(self, inputs: Any) -> None: ...
    def call(
        self, inputs: Any, training: bool | None = None, mask: Tensor | None = None
    ) -> Tensor: ...
    def hidden_states(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        cutoff: Callable[[Tensor], Tensor] | None = None,
        return_memory: bool = False,
    ) -> Any: ...
    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]: ...
    def read_source(self, source: Tensor) -> Tensor: ...
    def start(self, memory: Tensor, length: int, width: int = 1) -> tuple[tuple, tuple]: ...
    def read(
        self, tokens: Tensor, memory_heads: tuple, memory_attention_mask: Tensor
    ) -> tuple[tuple[Tensor, Tensor], ...]: ...
    def step(
        self,
        tokens: Tensor,
        cache: tuple,
        index: Tensor,
        memory_heads: tuple,
        memory_attention_mask: Tensor,
        attention_mask: Tensor | None = None,
        output: Callable[[Tensor], Tensor] | None = None,
        return_attention_scores: bool = False,
        slot: Tensor | None = None,
    ) -> Prediction: ...
    @property
    def columns(self) -> tuple[FigureColumn, ...]: ...
    def attention_weights(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]: ...

class TargetDecoder:
    embeddings: Any
    stack: Any
    zero_start: Any
    starts_with_language: Any
    embedding: Any
    def __init__(self, config, policy, kernels, shared=None): ...
    @property
    def roles(self) -> dict[str, Any]: ...
    def read(self, target, source) -> Tensor: ...
    def embed(self, tokens, **options) -> Tensor: ...

class Transformer(EncoderDecoderModel):
    def __init__(
        self,
        config: TransformerConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[TransformerOptions],
    ) -> None: ...
    def make_input(self, config: Any, policy: Any, kernels: Any) -> EmbeddedTokens: ...
    def shared_embedding(self, config: Any, source: Any) -> Any: ...
