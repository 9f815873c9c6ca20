"""`SeriesConfig`, the configuration of a model from time series to a time series."""

import dataclasses
from typing import Annotated, Literal

from keras_transformer.checks import check_positive
from keras_transformer.config.block import Count
from keras_transformer.config.block_stack import OPTIONS_OF_BLOCK, OPTIONS_OF_STACK
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.table_format import TableFormat

RECURRENT = ("lstm", "gru", "lstm_attention", "gru_attention")
# Fields of a block that a self-attention after recurrent layers has as well.
OF_ATTENTION = {"num_heads", "d_k", "d_v", "attention_dropout", "attention_bias", "score"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeriesConfig(ModelConfig):
    """Everything that decides the shape and the arithmetic of a `SeriesRegressor`.

    The arguments are those of `ModelConfig` and of `BlockConfig`, and those below. `max_length` is
    the length of a window, in steps. Recurrent encoders have `num_layers` layers of `d_model`
    units; of the fields of a block they take `dropout`, with attention also those of the attention.

    Args:
        encoder: What reads the series: `"transformer"`, blocks with causal self-attention; `"lstm"`
            or `"gru"`, recurrent layers; `"lstm_attention"` or `"gru_attention"`, recurrent layers
            and then one causal self-attention with a residual connection.
        scored: Steps at the end of a window whose outputs are used; those before them warm the
            model up.
        inputs: Names of the inputs.
        target: Name of the target.
        input_mean: For each input what is taken away from it, its mean in training.
        input_scale: For each input what it is then divided by, its standard deviation.
        snow: Of the inputs the names of precipitation and of temperature, in whose place a
            `SnowAccount` puts water and snow; their `input_mean` and `input_scale` are those of
            water and snow. Empty: both stay as they are.
        target_mean: Mean of the target in training.
        target_scale: Its standard deviation.
        table: A `TableFormat`, or its fields as a dictionary: how lines of a CSV file are written
            that are read for the model, and the time between them. It changes no arithmetic.

    Example:
        >>> from keras_transformer import SeriesConfig
        >>> SeriesConfig(inputs=("rain", "temperature"), target="discharge", encoder="lstm",
        ...     input_mean=(2.5, 8.0), input_scale=(6.0, 7.0)).num_inputs
        2
    """

    encoder: Literal["transformer", "lstm", "gru", "lstm_attention", "gru_attention"] = (
        "transformer"
    )
    scored: Count = 1
    inputs: tuple = ("input",)
    target: str = "target"
    input_mean: tuple = (0.0,)
    input_scale: tuple = (1.0,)
    snow: tuple = ()
    target_mean: float = 0.0
    target_scale: Annotated[float, check_positive] = 1.0
    table: TableFormat = TableFormat()

    def __post_init__(self):
        super().__post_init__()
        for name in ("inputs", "input_mean", "input_scale", "snow"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # JSON knows lists only
        if isinstance(self.table, dict):
            object.__setattr__(self, "table", TableFormat(**self.table))
        if not len(self.inputs) == len(self.input_mean) == len(self.input_scale):
            raise ValueError(
                "`inputs`, `input_mean` and `input_scale` must be equally long. Received: "
                f"{len(self.inputs)}, {len(self.input_mean)} and {len(self.input_scale)}."
            )
        if self.snow and (len(self.snow) != 2 or len({*self.snow} & {*self.inputs}) != 2):
            raise ValueError(
                "`snow` must name two of the inputs, precipitation and temperature. Received: "
                f"{', '.join(map(str, self.snow))}."
            )
        for scale in self.input_scale:
            check_positive("input_scale", scale)

    @classmethod
    def without_effect(cls, fields):  # noqa: D102
        encoder = fields.get("encoder", "transformer")
        if encoder not in RECURRENT:
            return {"max_length", "scored"}
        kept = {"dropout"} | (OF_ATTENTION if encoder.endswith("attention") else set())
        return {"scored", *OPTIONS_OF_BLOCK, *OPTIONS_OF_STACK} - kept - {"num_layers", "d_model"}

    @property
    def num_inputs(self):
        """Number of inputs F."""
        return len(self.inputs)
