"""Configurations of a `SeriesRegressor`: its inputs, encoder and head, and the whole model."""

import dataclasses
import typing
from typing import Annotated, Any

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_choice, check_positive
from keras_transformer.config.block import Count
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.part_config import PartConfig
from keras_transformer.config.parts import Part
from keras_transformer.config.stack import ENCODER, StackConfig
from keras_transformer.tasks.time_series.recurrent import Cells, RecurrentConfig
from keras_transformer.tasks.time_series.table_format import TableFormat


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
        ...     input_mean=(2.5, 8.0), input_scale=(6.0, 7.0)).input.num_inputs
        2
    """

    description = {
        "input": Part(SeriesInput()),
        "encoder": StepsEncoder(),
        "head": Part(NumberHead()),
    }
    follow = frozenset({"max_length"})
