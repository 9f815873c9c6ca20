"""Configurations of a `SpeechTransformer`: log-mel frames, two convolutions, and transcripts."""

import dataclasses
import functools
import math
from typing import Annotated, ClassVar

from keras_transformer.arguments import documented, option
from keras_transformer.checks import Count, check_activation, check_count, check_positive
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.config.rules import THRESHOLDS
from keras_transformer.config.stack import DECODER, ENCODER, StackConfig
from keras_transformer.config.tokens import OutputHead, VocabularyOptions
from keras_transformer.tensors import Tensor

Seconds = Annotated[float, check_positive]
Activation = Annotated[str, check_activation]
Even = Annotated[int, functools.partial(check_count, least=2)]


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeechInput(PartConfig):
    """Configuration of recordings of speech, whose log-mel frames are the source of a model.

    The defaults are Whisper's (Radford et al., 2022, section 2.2).

    Args:
        **options: See `help(SpeechInput)`.
    """

    sample_rate: Count = option(16_000, "Samples per second.", set_by="data")
    window_length: Even = option(400, "Length of the window of a frame, in samples; even.")
    hop_length: Count = option(
        160, "Distance between two frames, in samples; at most `window_length`."
    )
    num_mel_filters: Count = option(80, "Number of mel filters: the features of a frame.")
    max_seconds: Seconds = option(
        30.0,
        """Maximum length of a recording, in seconds. Longer recordings are processed in overlapping
        windows of this length.""",
    )
    pad_to_max_seconds: bool = option(
        False,
        """Appends silence to every recording up to `max_seconds`, and lets the encoder and the
        decoder attend to it, as in Whisper. By default, shorter recordings cost less, and padding
        is masked.""",
    )
    kernel_size: Count = option(
        3, "Width of the two convolutions, in positions; odd, so that it has a centre."
    )
    conv_stride: Count = option(
        2, "Stride of the second convolution: number of frames for each position of the encoder."
    )
    conv_activation: Activation = option("gelu", "Activation after each convolution.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window_length % 2 or self.hop_length > self.window_length:
            raise ValueError(
                "`window_length` must be even and at least `hop_length`, so that no sample is "
                f"skipped. Received: window_length={self.window_length}, "
                f"hop_length={self.hop_length}."
            )
        if self.num_mel_filters > self.window_length // 2 + 1:
            raise ValueError(
                "`num_mel_filters` must be at most `window_length // 2 + 1`, the number of "
                f"frequencies. Received: num_mel_filters={self.num_mel_filters}, "
                f"window_length={self.window_length}."
            )
        if not self.kernel_size % 2:
            raise ValueError(
                f"`kernel_size` must be odd. Received: kernel_size={self.kernel_size}."
            )
        if self.max_samples < self.hop_length:
            raise ValueError(
                "`max_seconds` must be at least the time of a frame. Received: "
                f"max_seconds={self.max_seconds}, hop_length={self.hop_length} samples."
            )

    @property
    def max_samples(self) -> int:
        """Maximum length of a recording, in samples."""
        return round(self.max_seconds * self.sample_rate)

    @property
    def max_frames(self) -> int:
        """Maximum length of a recording, in frames."""
        return self.max_samples // self.hop_length

    @property
    def max_positions(self) -> int:
        """Maximum length of a recording, in positions of the encoder."""
        return math.ceil(self.max_frames / self.conv_stride)

    def positions(self, samples: Tensor) -> Tensor:
        """Returns the number of positions of the encoder for recordings.

        Args:
            samples: Number of samples of each recording, at most `max_samples`: integers, a tensor
                or an array.
        """
        if self.pad_to_max_seconds:
            samples = samples * 0 + self.max_samples
        return -(-(samples // self.hop_length) // self.conv_stride)

    @property
    def features(self) -> dict[str, int]:
        """Arguments of the `LogMel` that computes the frames."""
        return {
            "sample_rate": self.sample_rate,
            "window": self.window_length,
            "hop": self.hop_length,
            "num_filters": self.num_mel_filters,
        }


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class TranscriptHead(OutputHead, VocabularyOptions):
    """Configuration of a head that predicts the next token of a text whose source is no text.

    Args:
        **options: See `help(TranscriptHead)`.
    """

    accepted: ClassVar[tuple] = (
        *OutputHead.accepted,
        *("prompt_ids", "first_suppressed_ids", "timestamp_id", "max_first_timestamp"),
        *("no_timestamps_id", "language_ids", "task_ids", "detect_language", "no_speech_id"),
        *("previous_id", "alignment_heads"),
        *THRESHOLDS,
    )


class SpeechTransformerConfig(ModelConfig):
    """Configuration of a `SpeechTransformer`.

    Args:
        **options: Options of `SpeechInput`, `StackConfig`, `BlockConfig` and `TranscriptHead`; see
            `TransformerConfig` for those of only one stack. `max_length` is the maximum length of
            an output, in tokens; that of the encoder follows from `max_seconds`.

    Example:
        >>> from keras_transformer.models import SpeechTransformerConfig
        >>> config = SpeechTransformerConfig.preset("tiny", vocab_size=100, max_seconds=10.0)
        >>> config.input.max_frames, config.encoder.max_length, config.max_length
        (1000, 500, 128)
    """

    description = {
        "input": Part(SpeechInput()),
        "encoder": Part(StackConfig(), kind="mixer", leave_out=(*ENCODER.leave_out, "max_length")),
        "decoder": DECODER,
        "head": Part(TranscriptHead()),
    }
    aliases = {"num_decoder_layers": ("decoder", "num_layers")}

    @property
    def max_length(self) -> int:
        """Maximum length of an output, in tokens."""
        return self.decoder.max_length

    def complete(self) -> None:  # noqa: D102
        encoder = dataclasses.replace(self.encoder, max_length=self.input.max_positions)
        object.__setattr__(self, "encoder", encoder)
