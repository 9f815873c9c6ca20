"""`SpanPredictorConfig`, the configuration of an encoder that finds an answer in a passage."""

import dataclasses
import functools
from typing import Annotated

from keras_transformer.checks import check_count
from keras_transformer.config.stack import StackConfig

Count = Annotated[int, functools.partial(check_count, least=1)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanPredictorConfig(StackConfig):
    """Everything that decides the shape and the arithmetic of a `SpanPredictor`.

    The arguments are those of `StackConfig` and of `BlockConfig`, and:

    Args:
        max_answer: Longest answer, in tokens of the passage.
        stride: Of a passage that is too long for the model, by how many tokens each window begins
            after the one before. `None`: half of a window.
    """

    max_answer: Count = 30
    stride: Count | None = None
