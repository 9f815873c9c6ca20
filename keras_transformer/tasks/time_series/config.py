"""Configurations of a `SeriesRegressor`: its inputs, encoder and head, and the whole model."""

import dataclasses
from typing import Annotated, Any, Literal

from keras_transformer.arguments import documented, option, options_of
from keras_transformer.checks import Count, Rate, check_positive
from keras_transformer.config.block import BlockConfig
from keras_transformer.config.encoders import EncoderChoice
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.mixers import Mixer, SelfAttention, completed, short_options
from keras_transformer.norms import Norm
from keras_transformer.tasks.time_series.table_format import TableFormat
from keras_transformer.variants import short

Cells = Literal["lstm", "gru", "lstm_attention", "gru_attention"]


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentConfig(PartConfig):
    """Configuration of LSTM or GRU layers, optionally followed by self-attention.

    The self-attention has a residual connection.

    Args:
        attention: The `SelfAttention` of the kinds that have one.
        **options: See `help(RecurrentConfig)`.
    """

    cells: Cells = option(
        "lstm",
        """Kind of layers: `"lstm"` or `"gru"`; or `"lstm_attention"` or `"gru_attention"`, with one
        causal self-attention after the recurrent layers.""",
    )
    num_layers: Count = option(6, "Number of recurrent layers.")
    d_model: Count = option(512, "Units of a recurrent layer.")
    max_length: Count = option(512, "Length of a window, in steps.")
    dropout: Rate = option(0.1, "Dropout rate on the output of the layers.")
    normalization: Norm = option(
        "layer", options_of(BlockConfig)["normalization"].metadata["help"], of=Norm
    )
    attention: SelfAttention | None = dataclasses.field(
        default=None, metadata={"of": SelfAttention}
    )

    has_blocks = False  # unlike `StackConfig`

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.has_attention:
            object.__setattr__(self, "attention", self.attention or SelfAttention())
        elif self.attention is not None or short(self.normalization) != "layer":
            self._refuse("normalization" if self.attention is None else "attention")

    def _refuse(self, name):
        raise ValueError(
            f"`{name}` has no effect without a self-attention. Received: cells={self.cells!r}."
        )

    @property
    def has_attention(self) -> bool:
        """`True` if self-attention follows the recurrent layers."""
        return self.cells.endswith("_attention")

    @property
    def mixer(self) -> Mixer:
        """The `LSTM` or `GRU` of each layer."""
        return Mixer.make({"kind": self.cells.removesuffix("_attention"), "units": self.d_model})

    def options(self) -> dict[str, dataclasses.Field]:  # noqa: D102
        if self.attention is None:
            return options_of(type(self), leave_out=("normalization",))
        return {**options_of(type(self)), **short_options(SelfAttention)}

    @classmethod
    def from_flat(cls, **options: Any) -> "RecurrentConfig":  # noqa: D102
        return cls(cells=options.pop("cells", "lstm")).with_options(**options)

    def with_options(self, **options: Any) -> "RecurrentConfig":  # noqa: D102
        names = {*short_options(SelfAttention)} & {*options}
        shorts = {name: options.pop(name) for name in names}
        if self.attention is None:
            if shorts:
                self._refuse(min(shorts))
            return dataclasses.replace(self, **options)
        attention = completed(self.attention, None, shorts)
        return dataclasses.replace(self, attention=attention, **options)

    def to_flat(self) -> dict[str, Any]:  # noqa: D102
        flat = super().to_flat()
        attention = flat.pop("attention")
        shorts = {} if attention is None else short_options(SelfAttention)
        return {**flat, **{name: getattr(attention, f.name) for name, f in shorts.items()}}


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberHead(PartConfig):
    """Configuration of a head that predicts a number at every step.

    Args:
        **options: See `help(NumberHead)`.
    """

    target: str = option("target", "Name of the target.", set_by="data")
    target_mean: float = option(
        0.0, "Mean of the target in training.", set_by="data", statistic=True
    )
    target_scale: Annotated[float, check_positive] = option(
        1.0, "Standard deviation of the target in training.", set_by="data", statistic=True
    )
    scored: Count = option(
        1,
        """Number of steps at the end of a window whose outputs are used; the steps before them are
        only context.""",
        set_by="data",
        statistic=True,
    )


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class SeriesInput(PartConfig):
    """Configuration of the inputs at every step of a time series.

    Args:
        **options: See `help(SeriesInput)`.
    """

    inputs: tuple = option(("input",), "Names of the inputs.", set_by="data")
    input_mean: tuple = option(
        (0.0,),
        "Training mean of each input, subtracted from it.",
        set_by="data",
        statistic=True,
    )
    input_scale: tuple = option(
        (1.0,),
        "Training standard deviation of each input, by which it is divided.",
        set_by="data",
        statistic=True,
    )
    snow: tuple = option(
        (),
        """Names of two of the inputs, precipitation and temperature, which a `SnowAccount`
        replaces by water and snow; their `input_mean` and `input_scale` then describe water and
        snow. Empty: no snow account.""",
        set_by="data",
    )
    table: TableFormat = option(
        TableFormat(),
        """Format of the lines of a CSV file and the time between them: a `TableFormat`, or its
        fields as a dictionary. It does not affect the model.""",
        set_by="data",
        statistic=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("inputs", "input_mean", "input_scale", "snow"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # tuples are lists in JSON
        if isinstance(self.table, dict):
            object.__setattr__(self, "table", TableFormat(**self.table))
        if not len(self.inputs) == len(self.input_mean) == len(self.input_scale):
            raise ValueError(
                "`inputs`, `input_mean` and `input_scale` must have the same length. Received: "
                f"{len(self.inputs)}, {len(self.input_mean)} and {len(self.input_scale)}."
            )
        if self.snow and (len(self.snow) != 2 or len({*self.snow} & {*self.inputs}) != 2):
            raise ValueError(
                "`snow` must name two of the inputs, precipitation and temperature. Received: "
                f"{', '.join(map(str, self.snow))}."
            )
        for scale in self.input_scale:
            check_positive("input_scale", scale)

    @property
    def num_inputs(self) -> int:
        """Number of inputs F."""
        return len(self.inputs)


RECURRENT = RecurrentConfig(cells="lstm_attention")  # all options have an effect on this kind


class SeriesConfig(ModelConfig):
    """Configuration of a `SeriesRegressor`.

    Args:
        **options: Options of `SeriesInput` and `NumberHead`, and of the encoder. `encoder` is
            `"transformer"`, blocks with causal self-attention, with the options of `StackConfig`
            and `BlockConfig`; or `"lstm"`, `"gru"`, `"lstm_attention"` or `"gru_attention"`, with
            the options of `RecurrentConfig`. `max_length` is the length of a window, in steps.

    Example:
        >>> from keras_transformer.models import SeriesConfig
        >>> SeriesConfig(inputs=("rain", "temperature"), target="discharge", encoder="lstm",
        ...     input_mean=(2.5, 8.0), input_scale=(6.0, 7.0)).input.num_inputs
        2
    """

    description = {
        "input": Part(SeriesInput()),
        "encoder": EncoderChoice(kind="cells", other=RECURRENT, causal=True),
        "head": Part(NumberHead()),
    }
    follow = frozenset({"max_length"})
