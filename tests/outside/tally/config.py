"""Configurations of a `Counter`: its head and the whole model."""

import dataclasses

from keras_transformer.arguments import documented, option
from keras_transformer.config.model import ModelConfig
from keras_transformer.config.parts import Part, PartConfig
from keras_transformer.config.stack import ENCODER
from keras_transformer.config.tokens import TokenInput


@documented
@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberHead(PartConfig):
    """Configuration of a head that predicts one number for a text.

    Args:
        **options: See `help(NumberHead)`.
    """

    factor: float = option(1.0, "Factor on the number.")


class CounterConfig(ModelConfig):
    """Configuration of a `Counter`."""

    description = {
        "input": Part(TokenInput()),
        "encoder": ENCODER,
        "head": Part(NumberHead()),
    }
