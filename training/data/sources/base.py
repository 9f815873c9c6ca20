"""The interface of every source of data."""

import abc

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

    def check_split(self, split):
        """Raises a `ValueError` unless `split` is one of `splits`."""
        if split not in self.splits:
            raise ValueError(
                f"`split` must be one of {', '.join(self.splits)}, the splits of "
                f"{self.description}. Received: split={split!r}."
            )
