"""The order of scores."""

from collections.abc import Sequence

import numpy as np


def descending(scores: Sequence[float]) -> list[int]:
    """Returns the indices of scores, the highest score first.

    Equal scores keep their order, and NaN comes last.
    """
    return np.argsort(-np.asarray(scores, "float64"), kind="stable").tolist()
