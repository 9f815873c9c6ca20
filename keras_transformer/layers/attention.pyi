# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any

from keras_transformer import positions
from keras_transformer.layers.kernels import Kernels
from keras_transformer.layers.multi_head import MultiHeadAttention
from keras_transformer.mixers import LocalWindow
from keras_transformer.mixers.self_attention import SelfAttention
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.norms.norm import Norm
from keras_transformer.positions.position import Position
from keras_transformer.scores.score import AttentionScore
from keras_transformer.tensors import Shape, Tensor

class MultiHeadSelfAttention(MultiHeadAttention):
    causal: bool
    hides_start: bool
    window: LocalWindow | None
    position: positions.Position
    blocks: Any
    def __init__(
        self,
        num_heads: int | SelfAttention,
        causal: bool = False,
        position: Position | str | dict[str, Any] | None = None,
        hides_start: bool = False,
        *,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        use_bias: bool | list[str] = False,
        query_key_norm: Norm | str | dict[str, Any] | None = None,
        score: AttentionScore | str | dict[str, Any] = "scaled_dot_product",
        window: AttentionWindow | str | dict[str, Any] | int | None = None,
        kernels: Kernels = ...,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
    ) -> None: ...
    def build(self, x_shape: Shape, attention_mask_shape: Shape | None = None) -> None: ...
    def call(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]: ...
    def read(
        self, x: Tensor, count: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
    def read_more(
        self, x: Tensor, past: tuple[Tensor, Tensor], start: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
    def _attend(
        self, heads, places, attention_mask=None, training=False, real=None, weights=False
    ): ...
    def _project(self, x, places, real=None): ...
    def _near(self, queries, keys): ...
    def _biases(self, query, key, queries, keys): ...
    def _relation(self, heads, queries, keys): ...
    def empty_cache(self, batch: Tensor, length: int, width: int = 1) -> tuple[Tensor, ...]: ...
    def extended_cache(
        self, cache: tuple[Tensor, ...], length: int, width: int
    ) -> tuple[Tensor, ...]: ...
    def recalled_cache(
        self, cache: tuple[Tensor, ...], heads: tuple[Tensor, Tensor], unread: Tensor, width: int
    ) -> tuple[Tensor, ...]: ...
    @property
    def reads_places(self) -> bool: ...
    def compacted_cache(
        self, cache: tuple[Tensor, ...], chosen: Tensor, length: int, width: int
    ) -> tuple[Tensor, ...]: ...
    def step(
        self,
        x: Tensor,
        cache: tuple[Tensor, ...],
        index: Tensor,
        attention_mask: Tensor | None = None,
        slot: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]: ...
    def _step_of_rows(self, x, cache, rows): ...
    def get_config(self) -> dict[str, Any]: ...
