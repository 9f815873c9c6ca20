"""Functions of an export without loops, and the program that repeats the step of such a search."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.decoding.unrolled import RUNNING
from keras_transformer.export.errors import ExportError

ENCODE, STEP = "encode", "step"  # beginnings of the names of the two functions


@dataclasses.dataclass(frozen=True)
class StateTensor:
    """A tensor that the functions of an `UnrolledSearch` hand over.

    Args:
        name: Name of the output of `encode`, of the input of `step`, and, if it changes, of the
            output of `step`.
        dtype: `"float32"` or `"int32"`.
        shape: Its sizes.
        changes: Whether a step returns it. Otherwise every step takes that of `encode`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    changes: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))  # JSON has lists only


@dataclasses.dataclass(frozen=True)
class UnrolledSearch:
    """The two functions of a search that a program calls instead of one with a loop.

    `encode` takes the inputs of the search and returns its state. `step` takes the same inputs and
    the state. It returns the outputs of the search so far, the tensors of the state that it
    changes, and `running`. The program repeats it until that is 0.

    Args:
        encode, step: Names of the functions in the export.
        state: The `StateTensor`s, in the order of the inputs of `step`.
    """

    encode: str
    step: str
    state: tuple[StateTensor, ...]

    def __post_init__(self) -> None:
        tensors = (
            one if isinstance(one, StateTensor) else StateTensor(**one) for one in self.state
        )
        object.__setattr__(self, "state", tuple(tensors))

    @classmethod
    def of(cls, name: str, given: dict[str, Any], returned: dict[str, Any]) -> "UnrolledSearch":
        """Returns the search with these states.

        Args:
            name: Name of the search.
            given: Dictionary from the names of a state to tensors or their `tf.TensorSpec`s.
            returned: The outputs of a step by name.
        """
        encode, step = names_of(name)
        state = (
            StateTensor(key, one.dtype.name, one.shape.as_list(), key in returned)
            for key, one in given.items()
        )
        return cls(encode, step, tuple(state))

    def run(
        self, call: Callable[..., dict[str, np.ndarray]], longest: int, **inputs: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of the search.

        Args:
            call: Function that calls a function of the export: its name, then inputs by name.
            longest: Maximum number of steps.
            **inputs: The inputs of the search.

        Raises:
            ExportError: If the search does not end.
        """
        state = call(self.encode, **inputs)
        for _ in range(longest):
            outputs = call(self.step, **inputs, **state)
            if not outputs[RUNNING][0]:
                return outputs
            state = {one.name: (outputs if one.changes else state)[one.name] for one in self.state}
        raise ExportError(f"{self.step} did not end within {longest} steps.")


def names_of(name: str) -> tuple[str, str]:
    """Returns the names of both functions of the search with a name."""
    return f"{ENCODE}_{name}", f"{STEP}_{name}"
