# Written by `make stubs`. Options are declared in the configurations, each once.

from collections.abc import Callable
from typing import Any, overload

from keras_transformer.feed_forwards.network import Network
from keras_transformer.layers.attending import ConfiguredLayer
from keras_transformer.layers.blocks.block import Block
from keras_transformer.layers.blocks.stack import Stack
from keras_transformer.layers.kernels import Kernels
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.norms.norm import Norm
from keras_transformer.norms.place import NormPlace
from keras_transformer.positions.position import Position
from keras_transformer.scores.score import AttentionScore
from keras_transformer.tensors import Shape, Tensor

OF_BLOCK: dict
OF_ENCODER: dict

class EncoderCall(ConfiguredLayer):
    def build(self, x_shape: Shape, attention_mask_shape: Shape | None = None) -> None: ...
    def call(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]: ...
    def get_config(self) -> dict[str, Any]: ...

class EncoderBlock(EncoderCall, Block):
    @overload
    def __init__(
        self,
        num_heads: int | None,
        d_ff: int,
        causal: bool = False,
        *,
        max_length: int = 512,
        position: Position | str | dict[str, Any] = "none",
        attention_position: Position | str | dict[str, Any] = "none",
        attends_to_start: bool | None = None,
        mixer: Mixer | str | dict[str, Any] = "self_attention",
        dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: str | Callable[..., Any] = "relu",
        feed_forward: Network | str | dict[str, Any] = "plain",
        norm: NormPlace | str | dict[str, Any] = "post",
        normalization: Norm | str | dict[str, Any] = "layer",
        layer_scale: float | None = None,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        attention_dropout: float = 0.0,
        attention_bias: bool | list[str] = False,
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
    @overload
    def __init__(
        self,
        *,
        d_ff: int,
        causal: bool = False,
        max_length: int = 512,
        position: Position | str | dict[str, Any] = "none",
        attention_position: Position | str | dict[str, Any] = "none",
        attends_to_start: bool | None = None,
        mixer: Mixer | str | dict[str, Any] = "self_attention",
        dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: str | Callable[..., Any] = "relu",
        feed_forward: Network | str | dict[str, Any] = "plain",
        norm: NormPlace | str | dict[str, Any] = "post",
        normalization: Norm | str | dict[str, Any] = "layer",
        layer_scale: float | None = None,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        attention_dropout: float = 0.0,
        attention_bias: bool | list[str] = False,
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

class Encoder(EncoderCall, Stack):
    @overload
    def __init__(
        self,
        num_layers: int,
        num_heads: int | None,
        d_ff: int,
        causal: bool = False,
        *,
        max_length: int = 512,
        final_norm: bool | None = None,
        embedding_norm: bool = False,
        position: Position | str | dict[str, Any] = "none",
        attention_position: Position | str | dict[str, Any] = "none",
        attends_to_start: bool | None = None,
        mixer: Mixer | str | dict[str, Any] = "self_attention",
        dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: str | Callable[..., Any] = "relu",
        feed_forward: Network | str | dict[str, Any] = "plain",
        norm: NormPlace | str | dict[str, Any] = "post",
        normalization: Norm | str | dict[str, Any] = "layer",
        layer_scale: float | None = None,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        attention_dropout: float = 0.0,
        attention_bias: bool | list[str] = False,
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
    @overload
    def __init__(
        self,
        num_layers: int,
        *,
        d_ff: int,
        causal: bool = False,
        max_length: int = 512,
        final_norm: bool | None = None,
        embedding_norm: bool = False,
        position: Position | str | dict[str, Any] = "none",
        attention_position: Position | str | dict[str, Any] = "none",
        attends_to_start: bool | None = None,
        mixer: Mixer | str | dict[str, Any] = "self_attention",
        dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: str | Callable[..., Any] = "relu",
        feed_forward: Network | str | dict[str, Any] = "plain",
        norm: NormPlace | str | dict[str, Any] = "post",
        normalization: Norm | str | dict[str, Any] = "layer",
        layer_scale: float | None = None,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        attention_dropout: float = 0.0,
        attention_bias: bool | list[str] = False,
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
