"""Shards: one of N equal parts of the work, so that any scheduler can divide it."""

import dataclasses
import re

from keras_transformer.checks import is_integer


@dataclasses.dataclass(frozen=True)
class Shard:
    """Part `index` of `count`. Counting starts at 0, as Kubernetes, AWS Batch and Slurm do it.

    Args:
        index: Number of the part, from 0 to `count - 1`.
        count: Number of parts.

    Raises:
        ValueError: If a number is out of range.
    """

    index: int
    count: int

    def __post_init__(self):
        numbers = is_integer(self.index) and is_integer(self.count)
        if not numbers or not 0 <= self.index < self.count:
            raise ValueError(
                f"a shard must be I/N with I from 0 to N - 1. Received: {self.index}/{self.count}."
            )

    @classmethod
    def parse(cls, text):
        """Returns the shard of a text such as `0/4`.

        Raises:
            ValueError: If it is none.
        """
        match = re.fullmatch("([0-9]+)/([0-9]+)", text)
        if match is None:
            raise ValueError(f"a shard must be I/N, such as 0/4. Received: {text}.")
        return cls(*map(int, match.groups()))

    def bounds(self, total):
        """Returns the first and the end of a contiguous range of `total` items.

        The ranges of all shards, in order, are all items, and differ in length by one at most.
        """
        return total * self.index // self.count, total * (self.index + 1) // self.count

    def owns(self, number):
        """Returns whether item `number`, from 0, is one of this shard, where they take turns."""
        return number % self.count == self.index

    def __str__(self):
        return f"{self.index}/{self.count}"
