"""Configuration of a head whose last layer is a linear map."""

import dataclasses
from typing import Annotated

from keras_transformer.arguments import documented, option
from keras_transformer.checks import check_activation
from keras_transformer.config.part_config import PartConfig


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearHeadConfig(PartConfig):
    """Configuration of a head whose last layer is a linear map from the encoder's output to logits.

    Args:
        **options: See `help(LinearHeadConfig)`.
    """

    transform: bool = option(
        False,
        """Adds a dense layer with `transform_activation` and a normalisation before the linear
        layer, as in ModernBERT.""",
    )
    transform_activation: Annotated[str, check_activation] = option(
        "gelu", 'Activation of the `transform`: `"gelu"` or another one, as for `activation`.'
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.transform and self.transform_activation != "gelu":
            raise ValueError(
                "`transform_activation` has no effect without `transform`. "
                f"Received: transform_activation={self.transform_activation!r}."
            )
