"""`Source`, the interface of all sources of data."""

import abc
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

SPLITS = ("train", "validation", "test")


def numbered_example(split: str, number: int, column: str | None = None) -> str:
    """Returns the place of an example whose file is not known: see `Source.place`."""
    return f"the {split} split of the data, example {number}"


class Source(abc.ABC):
    """Examples of a task in up to three splits, as tuples of texts or of arrays and texts.

    Attributes:
        splits: Names of its splits, among "train", "validation" and "test".
        description: Content and origin of the data, in one line for users.
    """

    splits: tuple[str, ...] = SPLITS
    description = ""

    @abc.abstractmethod
    def rows(self, split: str) -> "tf.data.Dataset":
        """Returns the examples of one split.

        Args:
            split: "train", "validation" or "test".

        Returns:
            A `tf.data.Dataset` of tuples, with a component for each of the task's `columns`, always
            in the same order. Texts are scalar strings in UTF-8.

        Raises:
            ValueError: If there is no such split.
        """

    def requests(self, split: str) -> "tf.data.Dataset":
        """Returns the examples of one split as a pipeline receives them, by default `rows`.

        A source whose rows a pipeline would prepare a second time overrides it.
        """
        return self.rows(split)

    def text_rows(self, split: str) -> "tf.data.Dataset":
        """Returns the examples of one split for reading their texts alone, by default `rows`.

        A source whose other columns take time overrides it; these columns may then be empty.
        """
        return self.rows(split)

    def metadata(self) -> dict[str, Any]:
        """Returns the fields of the model's configuration that the source determines."""
        return {}

    @abc.abstractmethod
    def count(self, split: str) -> int | None:
        """Returns the number of examples in a split. `None`: unknown before it is read."""

    def weights(self, split: str) -> "np.ndarray | None":
        """Returns how often an epoch contains each example of a split, on average.

        Returns:
            A float64 array in the order of `rows`, or `None` if it contains every example once.
        """
        self.check_split(split)
        return None

    def identity(self, split: str) -> Any:
        """Returns everything that the examples of a split depend on, plain values.

        If it changes, stored examples are encoded again. By default it is a checksum of all
        examples; sources of files return values that are faster to compute.
        """
        checksum = hashlib.sha256()
        for row in self.rows(split).as_numpy_iterator():
            for value in row:
                array = np.asarray(getattr(value, "to_list", lambda value=value: value)())
                checksum.update(repr((array.shape, array.dtype.str)).encode())
                plain = array.dtype != object
                checksum.update(array.tobytes() if plain else repr(array.tolist()).encode())
        return checksum.hexdigest()

    def left_out(self, split: str) -> int:
        """Returns the number of examples of a split that `rows` leaves out for an empty column."""
        self.check_split(split)
        return 0

    def place(self, split: str, number: int, column: str | None = None) -> str:
        """Returns where an example is in the data, for errors; a source of files names the line.

        Args:
            split: "train", "validation" or "test".
            number: Number of the example in `rows`, counted from 1.
            column: Name of the column that the error is about. `None`: any.
        """
        return numbered_example(split, number)

    def check(self) -> None:
        """Reads the data once and raises a `ValueError` if they contain an error.

        Most sources check their data when they are opened.
        """
        for split in self.splits:
            self.check_split(split)

    def check_split(self, split: str) -> None:
        """Raises a `ValueError` unless `split` is one of `splits`."""
        if split not in self.splits:
            raise ValueError(
                f"`split` must be one of {', '.join(self.splits)}, the splits of "
                f"{self.description}. Received: split={split!r}."
            )


class Copies(Source):
    """A source whose training split has every example of another one several times, each changed.

    The other splits do not change, and neither does what a pipeline receives.

    Args:
        data: The other `Source`.
        times: Number of copies of an example.
    """

    def __init__(self, data, times):
        self._data, self._copies = data, times
        self.splits, self.description = data.splits, data.description

    def requests(self, split) -> "tf.data.Dataset":  # noqa: D102
        return self._data.requests(split)

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return self._data.metadata()

    def count(self, split) -> int | None:  # noqa: D102
        count = self._data.count(split)
        return count if count is None else self._times(split) * count

    def weights(self, split) -> "np.ndarray | None":  # noqa: D102
        weights = self._data.weights(split)
        return weights if weights is None else np.tile(weights, self._times(split))

    def left_out(self, split) -> int:  # noqa: D102
        return self._times(split) * self._data.left_out(split)

    def place(self, split, number, column=None) -> str:
        """Returns where the example of the other source is of which this one is a copy."""
        count = self._data.count(split)
        return self._data.place(split, (number - 1) % count + 1 if count else number, column)

    def check(self) -> None:  # noqa: D102
        self._data.check()

    def _times(self, split):
        return self._copies if split == "train" else 1
