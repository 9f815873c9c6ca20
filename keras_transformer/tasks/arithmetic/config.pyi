# Written by `make stubs`. Options are declared in the configurations, each once.

import dataclasses
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack

from typing_extensions import TypedDict

from keras_transformer.checks import Count, OptionalNumber, Rate
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import PartConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.feed_forwards.network import Network
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.norms.norm import Norm
from keras_transformer.norms.place import NormPlace
from keras_transformer.positions.position import Position
from keras_transformer.scores.score import AttentionScore

PAD: int
NUM_SYMBOLS: dict
DIGITS: int
Layout = Literal["sequence", "aligned"]
EXTENDED: str

def check_cutoff(name: str, value: Any) -> None: ...
def check_kernel(name: str, value: Any) -> None: ...

Kernel = Annotated[int, check_kernel]
Cutoff = Annotated[float, check_cutoff]
KERNEL: tuple
CUTOFF: tuple

@dataclasses.dataclass(frozen=True, kw_only=True)
class NeuralGPUConfig(PartConfig):
    network: Literal["neural_gpu", "extended_neural_gpu"] = ...
    num_layers: Count = ...
    d_model: Count = ...
    max_length: Count = ...
    dropout: Rate = ...
    image_width: Count = ...
    kernel_size: Kernel = ...
    gate_cutoff: Cutoff = ...
    has_blocks: ClassVar[bool] = ...
    embedded_position: ClassVar[Position] = ...
    embedding_dropout: ClassVar[float] = ...
    @property
    def writes_tape(self) -> bool: ...

@dataclasses.dataclass(frozen=True, kw_only=True)
class SymbolInput(PartConfig):
    layout: Layout = ...
    embedding_scale: OptionalNumber = ...
    @property
    def num_symbols(self) -> int: ...

@dataclasses.dataclass(frozen=True, kw_only=True)
class DigitHead(PartConfig):
    pass

class CalculatorOptions(TypedDict, total=False, closed=True):
    layout: Literal["sequence", "aligned"]
    embedding_scale: float | None
    num_layers: int
    d_model: int | None
    max_length: int
    dropout: float
    image_width: int
    kernel_size: int
    gate_cutoff: float
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
    input: SymbolInput | dict[str, Any] | None
    encoder: (
        StackConfig
        | dict[str, Any]
        | Literal["neural_gpu", "extended_neural_gpu"]
        | NeuralGPUConfig
        | str
        | None
    )
    head: DigitHead | dict[str, Any] | None

class CalculatorConfig(ModelConfig):
    def __init__(
        self,
        *,
        layout: Literal["sequence", "aligned"] = "sequence",
        embedding_scale: float | None = None,
        num_layers: int = 6,
        d_model: int | None = 512,
        max_length: int = 512,
        dropout: float = 0.1,
        image_width: int = 4,
        kernel_size: int = 3,
        gate_cutoff: float = 1.2,
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
        input: SymbolInput | dict[str, Any] | None = None,
        encoder: StackConfig
        | dict[str, Any]
        | Literal["neural_gpu", "extended_neural_gpu"]
        | NeuralGPUConfig
        | str
        | None = None,
        head: DigitHead | dict[str, Any] | None = None,
    ) -> None: ...
    @property
    def writes_tape(self) -> bool: ...
    @classmethod
    def preset(cls, name: str, **changes: Unpack[CalculatorOptions]) -> Self: ...
