"""Messages about inputs and outputs that are not complete, and the number of such outputs."""

from collections.abc import Callable, Sequence
from typing import Any

CUT = "longer than the model's limit; its end was cut off"
INCOMPLETE = "an output reached its maximum length: text is missing, or the model repeated itself"


def count_incomplete(results: Sequence[Any], report: Callable[[int], object] | None = None) -> int:
    """Returns the number of results that are not complete.

    Args:
        results: List of results with the attribute `complete`.
        report: Function that is called with the number of each of them, from 1. `None`: none.
    """
    numbers = [number for number, one in enumerate(results, 1) if one.complete is False]
    if report is not None:
        for number in numbers:
            report(number)
    return len(numbers)
