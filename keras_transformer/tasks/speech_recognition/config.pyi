# Written by `make stubs`. Options are declared in the configurations, each once.

import dataclasses
import functools
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack

from typing_extensions import TypedDict

from keras_transformer.checks import Count, check_activation, check_count, check_positive
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import PartConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.config.tokens import OutputHead, VocabularyOptions
from keras_transformer.feed_forwards.network import Network
from keras_transformer.mixers.memory import MemoryReader
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.norms.norm import Norm
from keras_transformer.norms.place import NormPlace
from keras_transformer.positions.position import Position
from keras_transformer.scores.score import AttentionScore
from keras_transformer.tensors import Tensor

Seconds = Annotated[float, check_positive]
Activation = Annotated[str, check_activation]
Even = Annotated[int, functools.partial(check_count, least=2)]

@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeechInput(PartConfig):
    sample_rate: Count = ...
    window_length: Even = ...
    hop_length: Count = ...
    num_mel_filters: Count = ...
    max_seconds: Seconds = ...
    pad_to_max_seconds: bool = ...
    kernel_size: Count = ...
    conv_stride: Count = ...
    conv_activation: Activation = ...
    def __post_init__(self) -> None: ...
    @property
    def max_samples(self) -> int: ...
    @property
    def max_frames(self) -> int: ...
    @property
    def max_positions(self) -> int: ...
    def positions(self, samples: Tensor) -> Tensor: ...
    @property
    def features(self) -> dict[str, int]: ...

@dataclasses.dataclass(frozen=True, kw_only=True)
class TranscriptHead(OutputHead, VocabularyOptions):
    accepted: ClassVar[tuple] = ...

class SpeechTransformerOptions(TypedDict, total=False, closed=True):
    sample_rate: int
    window_length: int
    hop_length: int
    num_mel_filters: int
    max_seconds: float
    pad_to_max_seconds: bool
    kernel_size: int
    conv_stride: int
    conv_activation: str
    num_layers: int
    d_model: int | None
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
    max_length: int
    cross_attention: MemoryReader | str | dict[str, Any] | None
    vocab_size: int
    embedding_scale: float | None
    pad_id: int
    bos_id: int
    eos_id: int
    tie: Literal["all", "none"]
    output_bias: bool
    decoder_start: Literal["token", "zeros"]
    end_ids: tuple | list
    banned_ids: tuple | list
    suppressed_ids: tuple | list
    forced_bos_id: int | None
    forced_eos_id: int | None
    no_repeat_ngram: int
    prompt_ids: tuple | list
    first_suppressed_ids: tuple | list
    timestamp_id: int | None
    max_first_timestamp: int | None
    no_timestamps_id: int | None
    language_ids: tuple | list
    task_ids: tuple | list
    detect_language: bool
    no_speech_id: int | None
    previous_id: int | None
    alignment_heads: tuple | list
    no_speech_threshold: float
    log_probability_threshold: float
    compression_ratio_threshold: float
    input: SpeechInput | dict[str, Any] | None
    encoder: StackConfig | dict[str, Any] | Mixer | str | None
    decoder: StackConfig | dict[str, Any] | Mixer | str | None
    head: TranscriptHead | dict[str, Any] | None
    num_decoder_layers: int | None

class SpeechTransformerConfig(ModelConfig):
    def __init__(
        self,
        *,
        sample_rate: int = 16000,
        window_length: int = 400,
        hop_length: int = 160,
        num_mel_filters: int = 80,
        max_seconds: float = 30.0,
        pad_to_max_seconds: bool = False,
        kernel_size: int = 3,
        conv_stride: int = 2,
        conv_activation: str = "gelu",
        num_layers: int = 6,
        d_model: int | None = 512,
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
        max_length: int = 512,
        cross_attention: MemoryReader | str | dict[str, Any] | None = None,
        vocab_size: int = 37000,
        embedding_scale: float | None = None,
        pad_id: int = 0,
        bos_id: int = 2,
        eos_id: int = 3,
        tie: Literal["all", "none"] = "all",
        output_bias: bool = False,
        decoder_start: Literal["token", "zeros"] = "token",
        end_ids: tuple | list = (),
        banned_ids: tuple | list = (),
        suppressed_ids: tuple | list = (),
        forced_bos_id: int | None = None,
        forced_eos_id: int | None = None,
        no_repeat_ngram: int = 0,
        prompt_ids: tuple | list = (),
        first_suppressed_ids: tuple | list = (),
        timestamp_id: int | None = None,
        max_first_timestamp: int | None = None,
        no_timestamps_id: int | None = None,
        language_ids: tuple | list = (),
        task_ids: tuple | list = (),
        detect_language: bool = False,
        no_speech_id: int | None = None,
        previous_id: int | None = None,
        alignment_heads: tuple | list = (),
        no_speech_threshold: float = 0.6,
        log_probability_threshold: float = -1.0,
        compression_ratio_threshold: float = 2.4,
        input: SpeechInput | dict[str, Any] | None = None,
        encoder: StackConfig | dict[str, Any] | Mixer | str | None = None,
        decoder: StackConfig | dict[str, Any] | Mixer | str | None = None,
        head: TranscriptHead | dict[str, Any] | None = None,
        num_decoder_layers: int | None = None,
    ) -> None: ...
    @property
    def max_length(self) -> int: ...
    def complete(self) -> None: ...
    @classmethod
    def preset(cls, name: str, **changes: Unpack[SpeechTransformerOptions]) -> Self: ...
