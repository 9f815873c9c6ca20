"""Errors in examples, which name where the example is in the data."""

import contextlib
from collections.abc import Callable, Generator


class ExampleError(ValueError):
    """Error in an example.

    Args:
        number: Number of the example, counted from 1.
        problem: The rule and what was received.
        within: Where in the example the error is, such as `, word 3`.
    """

    def __init__(self, number: int, problem: str, within: str = ""):
        super().__init__(f"example {number}{within}: {problem}")
        self.number, self.problem, self.within = number, problem, within


@contextlib.contextmanager
def errors_name(place: Callable[[int], str]) -> Generator[None]:
    """Context manager in which an `ExampleError` becomes a `ValueError` that names a place.

    Args:
        place: Function from the number of an example to its place, such as a file and a line.
    """
    try:
        yield
    except ExampleError as error:
        message = f"{place(error.number)}{error.within}: {error.problem}"
        raise ValueError(message) from None
