"""`RecurrentConfig`, the configuration of LSTM or GRU layers, which replace blocks."""

import dataclasses
from typing import Literal

from keras_transformer.arguments import documented, option, options_of
from keras_transformer.config.block import BlockConfig, Count, OptionalCount, Rate
from keras_transformer.config.part_config import PartConfig
from keras_transformer.norms import Norm
from keras_transformer.scores import AttentionScore
from keras_transformer.variants import short

Cells = Literal["lstm", "gru", "lstm_attention", "gru_attention"]
# Options that have an effect only if self-attention follows the recurrent layers.
OF_ATTENTION = {
    *("num_heads", "d_k", "d_v", "attention_dropout", "attention_bias", "score"),
    "normalization",
}


def _help(name):
    """Returns the help text of an option of `BlockConfig`."""
    (field,) = (field for field in dataclasses.fields(BlockConfig) if field.name == name)
    return field.metadata["help"]


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentConfig(PartConfig):
    """Configuration of LSTM or GRU layers, optionally followed by self-attention.

    The self-attention has a residual connection.

    Args:
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
    num_heads: Count = option(8, _help("num_heads"))
    d_k: OptionalCount = option(None, _help("d_k"))
    d_v: OptionalCount = option(None, _help("d_v"))
    attention_dropout: Rate = option(0.0, _help("attention_dropout"))
    attention_bias: bool = option(False, _help("attention_bias"))
    score: AttentionScore = option("scaled_dot_product", _help("score"), of=AttentionScore)
    normalization: Norm = option("layer", _help("normalization"), of=Norm)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in OF_ATTENTION - {*self.options()}:
            if short(getattr(self, name)) != options_of(type(self))[name].default:
                raise ValueError(
                    f"`{name}` has no effect without a self-attention. "
                    f"Received: {name}={getattr(self, name)!r}, cells={self.cells!r}."
                )

    has_blocks = False  # unlike `StackConfig`

    @property
    def has_attention(self) -> bool:
        """`True` if self-attention follows the recurrent layers."""
        return self.cells.endswith("_attention")

    def options(self) -> dict[str, dataclasses.Field]:  # noqa: D102
        return options_of(type(self), leave_out=() if self.has_attention else OF_ATTENTION)
