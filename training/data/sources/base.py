"""The interface of every source of data."""

import abc
import hashlib

import numpy as np

SPLITS = ("train", "validation", "test")


class Source(abc.ABC):
    """Examples of a task, in up to three splits: tuples of texts, or of arrays and texts.

    Attributes:
        splits: The splits it has, among "train", "validation" and "test".
        description: One line for people: what it is and where it comes from.
    """

    splits = SPLITS
    description = ""

    @abc.abstractmethod
    def rows(self, split):
        """Returns the examples of one split.

        Args:
            split: "train", "validation" or "test".

        Returns:
            A `tf.data.Dataset` of tuples, a member for each of the task's `columns`, in an order
            that is always the same: of texts scalar strings in UTF-8.

        Raises:
            ValueError: If there is no such split.
        """

    def facts(self):
        """Returns those fields of the model's configuration that the source alone knows."""
        return {}

    @abc.abstractmethod
    def count(self, split):
        """Returns the number of examples in a split, or None if only reading it would show."""

    def weights(self, split):
        """Returns how often an epoch holds each example of a split, on average.

        Returns:
            A float64 array in the order of `rows`, or None if every example is held once.
        """
        self.check_split(split)
        return None

    def identity(self, split):
        """Returns what the examples of a split depend on, plain values.

        Examples that were stored are encoded again if it changes. Here it is a checksum of all
        examples; a source whose examples are in files has something that is found faster.
        """
        checksum = hashlib.sha256()
        for row in self.rows(split).as_numpy_iterator():
            for value in row:
                array = np.asarray(getattr(value, "to_list", lambda value=value: value)())
                checksum.update(repr((array.shape, array.dtype.str)).encode())
                plain = array.dtype != object
                checksum.update(array.tobytes() if plain else repr(array.tolist()).encode())
        return checksum.hexdigest()

    def check(self):
        """Reads the data once and raises a `ValueError` if something is wrong with them.

        Most sources have done so when they were opened.
        """
        for split in self.splits:
            self.check_split(split)

    def check_split(self, split):
        """Raises a `ValueError` unless `split` is one of `splits`."""
        if split not in self.splits:
            raise ValueError(
                f"`split` must be one of {', '.join(self.splits)}, the splits of "
                f"{self.description}. Received: split={split!r}."
            )
