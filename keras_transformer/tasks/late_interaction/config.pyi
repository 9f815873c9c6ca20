# Written by `make stubs`. Options are declared in the configurations, each once.

import dataclasses
from typing import Any, Literal, Self, Unpack

from typing_extensions import TypedDict

from keras_transformer.checks import OptionalCount, OptionalNumber
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import PartConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.config.tokens import TokenInput
from keras_transformer.feed_forwards.network import Network
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.norms.norm import Norm
from keras_transformer.norms.place import NormPlace
from keras_transformer.positions.position import Position
from keras_transformer.scores.score import AttentionScore

IDS: tuple
LENGTHS: tuple

@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiVectorHead(PartConfig):
    dimensions: OptionalCount = ...
    projection_bias: bool = ...
    query_length: OptionalCount = ...
    passage_length: OptionalCount = ...
    query_marker_id: int | None = ...
    passage_marker_id: int | None = ...
    expansion: Literal["none", "unattended", "attended"] = ...
    expansion_id: int | None = ...
    expansion_length: OptionalCount = ...
    skipped_ids: tuple = ...
    similarity_scale: OptionalNumber = ...
    def __post_init__(self) -> None: ...
    @property
    def scale(self) -> float: ...
    def check_with(self, config: Any) -> None: ...

LEAST: int

class MultiVectorEncoderOptions(TypedDict, total=False, closed=True):
    vocab_size: int
    embedding_scale: float | None
    pad_id: int
    bos_id: int
    eos_id: int
    segments: Literal["none", "from_bos", "after_eos", "first"]
    embedding_size: int | None
    num_layers: int
    d_model: int | None
    max_length: int
    final_norm: bool | None
    embedding_norm: bool
    position: Position | str | dict[str, Any]
    attention_position: Position | str | dict[str, Any]
    mixer: Mixer | str | dict[str, Any]
    d_ff: int
    dropout: float
    activation_dropout: float
    activation: str
    feed_forward: Network | str | dict[str, Any]
    norm: NormPlace | str | dict[str, Any]
    normalization: Norm | str | dict[str, Any]
    layer_scale: float | None
    num_heads: int
    num_key_value_heads: int | None
    d_k: int | None
    d_v: int | None
    attention_dropout: float
    attention_bias: bool | list[str]
    query_key_norm: Norm | str | dict[str, Any] | None
    score: AttentionScore | str | dict[str, Any]
    window: AttentionWindow | str | dict[str, Any] | int | None
    dimensions: int | None
    projection_bias: bool
    query_length: int | None
    passage_length: int | None
    query_marker_id: int | None
    passage_marker_id: int | None
    expansion: Literal["none", "unattended", "attended"]
    expansion_id: int | None
    expansion_length: int | None
    skipped_ids: tuple | list
    similarity_scale: float | None
    input: TokenInput | dict[str, Any] | None
    encoder: StackConfig | dict[str, Any] | Mixer | str | None
    head: MultiVectorHead | dict[str, Any] | None

class MultiVectorEncoderConfig(ModelConfig):
    def __init__(
        self,
        *,
        vocab_size: int = 37000,
        embedding_scale: float | None = None,
        pad_id: int = 0,
        bos_id: int = 2,
        eos_id: int = 3,
        segments: Literal["none", "from_bos", "after_eos", "first"] = "none",
        embedding_size: int | None = None,
        num_layers: int = 6,
        d_model: int | None = 512,
        max_length: int = 512,
        final_norm: bool | None = None,
        embedding_norm: bool = False,
        position: Position | str | dict[str, Any] = "sinusoidal",
        attention_position: Position | str | dict[str, Any] = "none",
        mixer: Mixer | str | dict[str, Any] = "self_attention",
        d_ff: int = 2048,
        dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: str = "relu",
        feed_forward: Network | str | dict[str, Any] = "plain",
        norm: NormPlace | str | dict[str, Any] = "post",
        normalization: Norm | str | dict[str, Any] = "layer",
        layer_scale: float | None = None,
        num_heads: int = 8,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        attention_dropout: float = 0.0,
        attention_bias: bool | list[str] = False,
        query_key_norm: Norm | str | dict[str, Any] | None = None,
        score: AttentionScore | str | dict[str, Any] = "scaled_dot_product",
        window: AttentionWindow | str | dict[str, Any] | int | None = None,
        dimensions: int | None = None,
        projection_bias: bool = False,
        query_length: int | None = None,
        passage_length: int | None = None,
        query_marker_id: int | None = None,
        passage_marker_id: int | None = None,
        expansion: Literal["none", "unattended", "attended"] = "none",
        expansion_id: int | None = None,
        expansion_length: int | None = None,
        skipped_ids: tuple | list = (),
        similarity_scale: float | None = None,
        input: TokenInput | dict[str, Any] | None = None,
        encoder: StackConfig | dict[str, Any] | Mixer | str | None = None,
        head: MultiVectorHead | dict[str, Any] | None = None,
    ) -> None: ...
    @classmethod
    def preset(cls, name: str, **changes: Unpack[MultiVectorEncoderOptions]) -> Self: ...
