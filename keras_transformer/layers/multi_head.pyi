# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, ClassVar

from keras_transformer.layers.attending import AttendingLayer
from keras_transformer.layers.kernels import Kernels
from keras_transformer.mixers import AttentionHeads
from keras_transformer.mixers.attention import CrossAttention
from keras_transformer.norms.norm import Norm
from keras_transformer.scores.score import AttentionScore
from keras_transformer.tensors import Shape, Tensor

class MultiHeadAttention(AttendingLayer):
    options_class: ClassVar[Any]
    num_heads: int
    num_key_value_heads: int
    head_sizes: tuple[int, int]
    dropout_rate: float
    score: AttentionScore
    query_key_norm: Norm | None
    options: Any
    dropout: Any
    query: Any
    key: Any
    value: Any
    output_projection: Any
    query_norm: Any
    key_norm: Any
    def __init__(self, num_heads: int | dict[str, Any] | AttentionHeads, **options: Any): ...
    def _build_projections(self, query_shape, memory_shape): ...
    def _projection(self, units, name, width): ...
    def project_query(self, x: Tensor) -> Tensor: ...
    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]: ...
    def _query_heads(self, x, real=None): ...
    def _key_heads(self, x, real=None): ...
    def _value_heads(self, x, real=None): ...
    def compare(self, query: Tensor, key: Tensor) -> Tensor: ...
    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        bias: Tensor | None = None,
        pairs: Tensor | None = None,
        real: Tensor | None = None,
    ) -> Tensor: ...
    def _attended(self, query, key, value, attention_mask, training, bias=None, pairs=None): ...
    def attend_with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        bias: Tensor | None = None,
        pairs: Tensor | None = None,
        real: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def _composed(self, query, key, value, attention_mask, training): ...
    def _heads(self, projection, x, count, real): ...
    def _join_heads(self, heads, real=None): ...
    def get_config(self) -> dict[str, Any]: ...

class MultiHeadCrossAttention(MultiHeadAttention):
    def __init__(
        self,
        num_heads: int | CrossAttention,
        *,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        use_bias: bool | list[str] = False,
        query_key_norm: Norm | str | dict[str, Any] | None = None,
        score: AttentionScore | str | dict[str, Any] = "scaled_dot_product",
        kernels: Kernels = ...,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
    ) -> None: ...
    def build(
        self, x_shape: Shape, memory_shape: Shape, attention_mask_shape: Shape | None = None
    ) -> None: ...
    def call(
        self,
        x: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]: ...
    def step(
        self,
        x: Tensor,
        memory_heads: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        index: Tensor = 0,
    ) -> Tensor | tuple[Tensor, Tensor]: ...
