"""Configuration of a head that predicts the next token at each position."""

import dataclasses
from typing import Literal

from keras_transformer.arguments import documented, option
from keras_transformer.config.part_config import PartConfig


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class NextTokenHead(PartConfig):
    """Configuration of a head that predicts the next token at each position.

    Args:
        **options: See `help(NextTokenHead)`.
    """

    tie: Literal["all", "none"] = option(
        "all",
        """Weight tying: `"all"`, embedding and output weights are the same matrix (section 3.4), or
        `"none"`.""",
    )
    output_bias: bool = option(False, "Adds a bias to the logits. In the paper they have none.")

    @property
    def is_tied(self) -> bool:
        """`True` if the output weights are the table of an embedding."""
        return self.tie != "none"
