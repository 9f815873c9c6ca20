"""Configurations of a `Calculator`: its symbols, the Neural GPU and the whole model."""

import dataclasses
from typing import Annotated, Any, ClassVar, Literal

from keras_transformer.arguments import documented, option, options_of
from keras_transformer.checks import Count, OptionalNumber, Rate, check_finite
from keras_transformer.config.encoders import EncoderChoice
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.config.tokens import TokenInput
from keras_transformer.positions import Position

PAD = 0  # the symbol of padding
# Padding, two digits and two signs; or padding and four pairs of digits for each sign.
NUM_SYMBOLS = {"sequence": 5, "aligned": 9}
DIGITS = 2  # different outputs
Layout = Literal["sequence", "aligned"]
EXTENDED = "extended_neural_gpu"


def check_cutoff(name: str, value: Any) -> None:
    """Raises an error unless `value` is a number of at least 1."""
    check_finite(name, value)
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}.")


def check_kernel(name: str, value: Any) -> None:
    """Raises a `ValueError` unless `value` is an odd number, so that a kernel has a centre."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1 or value % 2 == 0:
        raise ValueError(f"`{name}` must be an odd number. Received: {name}={value!r}.")


Kernel = Annotated[int, check_kernel]
Cutoff = Annotated[float, check_cutoff]
KERNEL = (3, "Height and width of the convolutions' kernels, odd.")
CUTOFF = (
    1.2,
    """Factor c of the sigmoid in gates: `c * sigmoid(x) - (c - 1) / 2`, cut off at 0 and 1, so that
    a gate can be exactly open or closed. 1: the sigmoid itself.""",
)


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class NeuralGPUConfig(PartConfig):
    """Configuration of a Neural GPU or an Extended Neural GPU.

    Args:
        **options: See `help(NeuralGPUConfig)`.
    """

    network: Literal["neural_gpu", "extended_neural_gpu"] = option(
        "neural_gpu",
        """Kind of encoder: `"neural_gpu"`, convolutional gated recurrent units on a mental
        image; or `"extended_neural_gpu"`, in which a second stack of them follows, a decoder that
        writes one digit after the other to a tape and reads it.""",
    )
    num_layers: Count = option(
        6, "Number of convolutional gated recurrent units in a step, also of the decoder's."
    )
    d_model: Count = option(512, "Width of the model: maps of the mental image.")
    max_length: Count = option(512, "Maximum number of symbols of an expression.")
    dropout: Rate = option(0.1, "Dropout rate of the mental image before each step.")
    image_width: Count = option(
        4, "Width w of the mental image, in columns; the expression is written into the first."
    )
    kernel_size: Kernel = option(*KERNEL)
    gate_cutoff: Cutoff = option(*CUTOFF)

    has_blocks: ClassVar[bool] = False  # unlike `StackConfig`
    embedded_position: ClassVar[Position] = Position.make("none")
    embedding_dropout: ClassVar[float] = 0.0

    @property
    def writes_tape(self) -> bool:
        """`True` if a decoder follows, which writes one digit after the other."""
        return self.network == EXTENDED


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SymbolInput(PartConfig):
    """Configuration of the symbols of an expression.

    Args:
        **options: See `help(SymbolInput)`.
    """

    layout: Layout = option(
        "sequence",
        """Arrangement of the two numbers: `"sequence"`, one after the other, as in Kaiser and
        Sutskever (2016); or `"aligned"`, one above the other, so that a symbol is a pair of digits,
        as in Price et al. (2016).""",
    )
    embedding_scale: OptionalNumber = option(
        None, options_of(TokenInput)["embedding_scale"].metadata["help"]
    )

    @property
    def num_symbols(self) -> int:
        """Number of different symbols, including padding."""
        return NUM_SYMBOLS[self.layout]


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class DigitHead(PartConfig):
    """Configuration of a head that predicts a digit at each position; it has no options."""


class CalculatorConfig(ModelConfig):
    """Configuration of a `Calculator`.

    Args:
        **options: Options of `SymbolInput` and of the encoder. `encoder` is `"transformer"`, blocks
            with self-attention in both directions, with the options of `StackConfig` and
            `BlockConfig`; or `"neural_gpu"` or `"extended_neural_gpu"`, with the options of
            `NeuralGPUConfig`.

    Example:
        >>> from keras_transformer.models import CalculatorConfig
        >>> config = CalculatorConfig(encoder="neural_gpu", num_layers=2, d_model=24)
        >>> config.encoder.image_width, config.input.num_symbols
        (4, 5)
    """

    description = {
        "input": Part(SymbolInput()),
        "encoder": EncoderChoice(kind="network", other=NeuralGPUConfig()),
        "head": Part(DigitHead()),
    }

    @property
    def writes_tape(self) -> bool:
        """`True` if the model writes one digit after the other, and reads the digits before."""
        return not self.encoder.has_blocks and self.encoder.writes_tape
