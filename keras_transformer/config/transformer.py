"""Configurations of the kinds of models of this package."""

import dataclasses
import typing
from typing import Any

from keras_transformer.checks import check_choice
from keras_transformer.config import heads, inputs
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import DECODER, ENCODER, StackConfig
from keras_transformer.positions import Binary
from keras_transformer.tasks.time_series.recurrent import Cells, RecurrentConfig

# Options of inputs that only a text that is read has, not one that is generated.
OF_TEXTS = ("segments", "embedding_size")
LANGUAGE_MODEL = Part(StackConfig(), leave_out=("mixer",))
RECURRENT = RecurrentConfig(cells="lstm_attention")  # all options have an effect on this kind


class TransformerConfig(ModelConfig):
    """Configuration of a `Transformer`.

    The defaults are the base model of the paper with its English-German vocabulary. `decoder` may
    be `"self_attention"` as in the paper, or `"ssru"`, a recurrence (Kim et al., 2019).

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `TargetHead`. An option
            of a stack applies to encoder and decoder; `num_decoder_layers` is the number of blocks
            of the decoder. Other options for only one stack are given under its name:
            `encoder={"num_heads": 8}`.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range or two values contradict each other.

    Example:
        >>> from keras_transformer import TransformerConfig
        >>> big = TransformerConfig.preset("big", vocab_size=37000)
        >>> big.d_model, big.num_heads, big.dropout
        (1024, 16, 0.3)
        >>> config = TransformerConfig(position="rotary", decoder={"position": "alibi"})
        >>> config.encoder.position, config.decoder.position
        (Rotary(), Alibi())

    Reference: Vaswani et al. (2017), Table 3.
    """

    description = {
        "input": Part(inputs.TokenInput(), leave_out=OF_TEXTS),
        "encoder": ENCODER,
        "decoder": DECODER,
        "head": Part(heads.TargetHead()),
    }
    aliases = {"num_decoder_layers": ("decoder", "num_layers")}


class LanguageModelConfig(ModelConfig):
    """Configuration of a `LanguageModel`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `GeneratingHead`.

    Example:
        >>> from keras_transformer import LanguageModelConfig
        >>> LanguageModelConfig.preset("tiny", vocab_size=4000).num_layers
        4
    """

    description = {
        "input": Part(inputs.TokenInput(), leave_out=OF_TEXTS),
        "decoder": LANGUAGE_MODEL,
        "head": Part(heads.GeneratingHead()),
    }


class ClassifierConfig(ModelConfig):
    """Configuration of a `TextClassifier`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `LabelsHead`.

    Example:
        >>> from keras_transformer import ClassifierConfig
        >>> config = ClassifierConfig.preset("tiny", vocab_size=4000, labels=("bad", "good"))
        >>> config.num_labels
        2
    """

    description = {
        "input": Part(inputs.TokenInput()),
        "encoder": ENCODER,
        "head": Part(heads.LabelsHead()),
    }


class TokenClassifierConfig(ModelConfig):
    """Configuration of a `TokenClassifier`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `TokenLabelsHead`.

    Example:
        >>> from keras_transformer import TokenClassifierConfig
        >>> config = TokenClassifierConfig.preset("tiny", labels=("O", "B-DATE", "I-DATE"))
        >>> config.num_labels
        3
    """

    description = {
        "input": Part(inputs.TokenInput()),
        "encoder": ENCODER,
        "head": Part(heads.TokenLabelsHead()),
    }


class SpanPredictorConfig(ModelConfig):
    """Configuration of a `SpanPredictor`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `SpansHead`. By
            default `segments` is `"from_bos"`.
    """

    description = {
        "input": Part(inputs.TokenInput(segments="from_bos")),
        "encoder": ENCODER,
        "head": Part(heads.SpansHead()),
    }


class MaskedLanguageModelConfig(ModelConfig):
    """Configuration of a `MaskedLanguageModel`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `MaskedTokenHead`.

    Example:
        >>> from keras_transformer import MaskedLanguageModelConfig
        >>> MaskedLanguageModelConfig.preset("tiny", vocab_size=4000).masking_rate
        0.15
    """

    description = {
        "input": Part(inputs.TokenInput()),
        "encoder": ENCODER,
        "head": Part(heads.MaskedTokenHead()),
    }


class EmbedderConfig(ModelConfig):
    """Configuration of a `TextEmbedder`.

    Args:
        **options: Options of `TokenInput`, `StackConfig`, `BlockConfig` and `VectorHead`.

    Example:
        >>> from keras_transformer import EmbedderConfig
        >>> EmbedderConfig.preset("tiny", vocab_size=4000, dimensions=64).pooling
        'mean'
    """

    description = {
        "input": Part(inputs.TokenInput()),
        "encoder": ENCODER,
        "head": Part(heads.VectorHead()),
    }


class ImageClassifierConfig(ModelConfig):
    """Configuration of an `ImageClassifier`.

    Args:
        **options: Options of `PatchInput`, `StackConfig`, `BlockConfig` and `ImageLabelsHead`.
            `max_length` follows from the number of patches. Sinusoidal positions encode row and
            column.

    Example:
        >>> from keras_transformer import ImageClassifierConfig
        >>> config = ImageClassifierConfig.preset("tiny", labels=("cat", "dog"), image_height=32,
        ...     image_width=48, patch_size=8)
        >>> config.grid
        (4, 6)
    """

    description = {
        "input": Part(inputs.PatchInput()),
        "encoder": ENCODER,
        "head": Part(heads.ImageLabelsHead()),
    }
    follow = frozenset({"max_length"})

    @property
    def leading_tokens(self) -> int:
        """Number of learned tokens before the patches."""
        return self.input.class_tokens if self.head.has_class_token else 0

    def complete(self) -> None:  # noqa: D102
        rows, columns = self.input.grid
        length = max(1, rows * columns + self.leading_tokens)
        if self.encoder.max_length not in (StackConfig().max_length, length):
            raise ValueError(
                f"`max_length` follows from the number of patches, here {length}. "
                f"Received: max_length={self.encoder.max_length}."
            )
        encoder = dataclasses.replace(self.encoder, max_length=length)
        object.__setattr__(self, "encoder", encoder)

    def check(self) -> None:  # noqa: D102
        super().check()
        if isinstance(self.encoder.position, Binary):
            raise ValueError(
                "`position` must not be binary for patches, which have a row and a column. "
                f"Received: position={self.encoder.position}."
            )


@dataclasses.dataclass(frozen=True)
class StepsEncoder(Part):
    """Encoder of the steps of a time series: blocks, `"transformer"`, or recurrent layers."""

    default: StackConfig = ENCODER.default
    kind: str = "cells"
    leave_out: tuple = ENCODER.leave_out
    more_kinds: tuple = ("transformer",)

    def options(self, base=None) -> dict[str, dataclasses.Field]:  # noqa: D102
        if base is None:
            return {**super().options(RECURRENT), **super().options(self.default)}
        return super().options(base)

    def kind_option(self) -> dataclasses.Field | None:  # noqa: D102
        return RECURRENT.options()[self.kind]

    def begin(self, given) -> tuple[Any, dict[str, Any]]:  # noqa: D102
        base, table = super().begin(given)
        if self.kind in table:
            check_choice("encoder", table[self.kind], (*self.more_kinds, *typing.get_args(Cells)))
        if table.get(self.kind) in self.more_kinds:
            del table[self.kind]
        return RecurrentConfig(cells=table[self.kind]) if self.kind in table else base, table

    def from_dict(self, fields) -> Any:  # noqa: D102
        kind = RecurrentConfig if self.kind in fields else StackConfig
        return kind.from_dict(fields)


class SeriesConfig(ModelConfig):
    """Configuration of a `SeriesRegressor`.

    Args:
        **options: Options of `SeriesInput` and `NumberHead`, and of the encoder. `encoder` is
            `"transformer"`, blocks with causal self-attention, with the options of `StackConfig`
            and `BlockConfig`; or `"lstm"`, `"gru"`, `"lstm_attention"` or `"gru_attention"`, with
            the options of `RecurrentConfig`. `max_length` is the length of a window, in steps.

    Example:
        >>> from keras_transformer import SeriesConfig
        >>> SeriesConfig(inputs=("rain", "temperature"), target="discharge", encoder="lstm",
        ...     input_mean=(2.5, 8.0), input_scale=(6.0, 7.0)).num_inputs
        2
    """

    description = {
        "input": Part(inputs.SeriesInput()),
        "encoder": StepsEncoder(),
        "head": Part(heads.NumberHead()),
    }
    follow = frozenset({"max_length"})
