# Written by `make stubs`. Options are declared in the configurations, each once.

import dataclasses
from typing import Annotated, Any, Literal, Self, Unpack

from typing_extensions import TypedDict

from keras_transformer.checks import Count, Rate, check_positive
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import PartConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.feed_forwards.network import Network
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.self_attention import SelfAttention
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.norms.norm import Norm
from keras_transformer.norms.place import NormPlace
from keras_transformer.positions.position import Position
from keras_transformer.scores.score import AttentionScore
from keras_transformer.tasks.time_series.table_format import TableFormat

Cells = Literal["lstm", "gru", "lstm_attention", "gru_attention"]

@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentConfig(PartConfig):
    cells: Cells = ...
    num_layers: Count = ...
    d_model: Count = ...
    max_length: Count = ...
    dropout: Rate = ...
    normalization: Norm = ...
    attention: SelfAttention | None = ...
    has_blocks: bool
    def __init__(
        self,
        *,
        cells: Literal["lstm", "gru", "lstm_attention", "gru_attention"] = "lstm",
        num_layers: int = 6,
        d_model: int = 512,
        max_length: int = 512,
        dropout: float = 0.1,
        normalization: Norm | str | dict[str, Any] = "layer",
        attention: SelfAttention | None = None,
    ) -> None: ...
    def __post_init__(self) -> None: ...
    def _refuse(self, name): ...
    @property
    def has_attention(self) -> bool: ...
    @property
    def mixer(self) -> Mixer: ...
    def options(self) -> dict[str, dataclasses.Field]: ...
    @classmethod
    def from_flat(cls, **options: Any) -> RecurrentConfig: ...
    def with_options(self, **options: Any) -> RecurrentConfig: ...
    def to_flat(self) -> dict[str, Any]: ...

@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberHead(PartConfig):
    target: str = ...
    target_mean: float = ...
    target_scale: Annotated[float, check_positive] = ...
    scored: Count = ...

@dataclasses.dataclass(frozen=True, kw_only=True)
class SeriesInput(PartConfig):
    inputs: tuple = ...
    input_mean: tuple = ...
    input_scale: tuple = ...
    snow: tuple = ...
    table: TableFormat = ...
    def __post_init__(self) -> None: ...
    @property
    def num_inputs(self) -> int: ...

RECURRENT: RecurrentConfig

class SeriesOptions(TypedDict, total=False, closed=True):
    inputs: tuple | list
    input_mean: tuple | list
    input_scale: tuple | list
    snow: tuple | list
    table: TableFormat | dict[str, Any]
    num_layers: int
    d_model: int | None
    max_length: int
    dropout: float
    normalization: Norm | str | dict[str, Any]
    num_heads: int
    num_key_value_heads: int | None
    d_k: int | None
    d_v: int | None
    attention_dropout: float
    attention_bias: bool | list[str]
    query_key_norm: Norm | str | dict[str, Any] | None
    score: AttentionScore | str | dict[str, Any]
    window: AttentionWindow | str | dict[str, Any] | int | None
    final_norm: bool | None
    embedding_norm: bool
    position: Position | str | dict[str, Any]
    attention_position: Position | str | dict[str, Any]
    mixer: Mixer | str | dict[str, Any]
    d_ff: int
    activation_dropout: float
    activation: str
    feed_forward: Network | str | dict[str, Any]
    norm: NormPlace | str | dict[str, Any]
    layer_scale: float | None
    target: str
    target_mean: float
    target_scale: float
    scored: int
    input: SeriesInput | dict[str, Any] | None
    encoder: (
        StackConfig
        | dict[str, Any]
        | Literal["lstm", "gru", "lstm_attention", "gru_attention"]
        | RecurrentConfig
        | str
        | None
    )
    head: NumberHead | dict[str, Any] | None

class SeriesConfig(ModelConfig):
    def __init__(
        self,
        *,
        inputs: tuple | list = ("input",),
        input_mean: tuple | list = (0.0,),
        input_scale: tuple | list = (1.0,),
        snow: tuple | list = (),
        table: TableFormat | dict[str, Any] = ...,
        num_layers: int = 6,
        d_model: int | None = 512,
        max_length: int = 512,
        dropout: float = 0.1,
        normalization: Norm | str | dict[str, Any] = "layer",
        num_heads: int = 8,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        attention_dropout: float = 0.0,
        attention_bias: bool | list[str] = False,
        query_key_norm: Norm | str | dict[str, Any] | None = None,
        score: AttentionScore | str | dict[str, Any] = "scaled_dot_product",
        window: AttentionWindow | str | dict[str, Any] | int | None = None,
        final_norm: bool | None = None,
        embedding_norm: bool = False,
        position: Position | str | dict[str, Any] = "sinusoidal",
        attention_position: Position | str | dict[str, Any] = "none",
        mixer: Mixer | str | dict[str, Any] = "self_attention",
        d_ff: int = 2048,
        activation_dropout: float = 0.0,
        activation: str = "relu",
        feed_forward: Network | str | dict[str, Any] = "plain",
        norm: NormPlace | str | dict[str, Any] = "post",
        layer_scale: float | None = None,
        target: str = "target",
        target_mean: float = 0.0,
        target_scale: float = 1.0,
        scored: int = 1,
        input: SeriesInput | dict[str, Any] | None = None,
        encoder: StackConfig
        | dict[str, Any]
        | Literal["lstm", "gru", "lstm_attention", "gru_attention"]
        | RecurrentConfig
        | str
        | None = None,
        head: NumberHead | dict[str, Any] | None = None,
    ) -> None: ...
    @classmethod
    def preset(cls, name: str, **changes: Unpack[SeriesOptions]) -> Self: ...
