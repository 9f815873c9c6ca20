"""Configuration of a head that predicts a number at every step."""

import dataclasses
from typing import Annotated

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_positive
from keras_transformer.config.block import Count
from keras_transformer.config.part_config import PartConfig


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
