"""What every source of parallel text offers."""

import abc

SPLITS = ("train", "validation", "test")


class ParallelData(abc.ABC):
    """Sentences in two languages, in up to three splits.

    Attributes:
        splits: The splits it has, among "train", "validation" and "test".
        description: One line for people: what it is and where it comes from.
    """

    splits = SPLITS
    description = ""

    @abc.abstractmethod
    def pairs(self, split):
        """Returns the sentences of one split.

        Args:
            split: "train", "validation" or "test".

        Returns:
            A `tf.data.Dataset` of pairs (source, target) of scalar strings in UTF-8, in an order
            that is always the same.

        Raises:
            ValueError: If there is no such split.
        """

    @abc.abstractmethod
    def count(self, split):
        """Returns the number of pairs in a split, or None if it is not known without reading it."""

    def weights(self, split):
        """Returns how often an epoch holds each pair of a split in the mean.

        Returns:
            A float64 array in the order of `pairs`, or None if every pair is held once.
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
