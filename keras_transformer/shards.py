"""Shards: the N equal parts into which a scheduler divides the work."""

import dataclasses
import re

from keras_transformer.checks import is_integer


@dataclasses.dataclass(frozen=True)
class Shard:
    """Part `index` of `count` parts, counted from 0 as in Kubernetes, AWS Batch and Slurm.

    Args:
        index: Number of the part, from 0 to `count - 1`.
        count: Number of parts.

    Raises:
        ValueError: If a number is out of range.
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        numbers = is_integer(self.index) and is_integer(self.count)
        if not numbers or not 0 <= self.index < self.count:
            raise ValueError(
                f"a shard must be I/N with I from 0 to N - 1. Received: {self.index}/{self.count}."
            )

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Returns the shard that a text such as `0/4` describes.

        Raises:
            ValueError: If the text does not describe a shard.
        """
        match = re.fullmatch("([0-9]+)/([0-9]+)", text)
        if match is None:
            raise ValueError(f"a shard must be I/N, such as 0/4. Received: {text}.")
        return cls(*map(int, match.groups()))

    def bounds(self, total: int) -> tuple[int, int]:
        """Returns the first item and the end of this shard's contiguous range of `total` items.

        The ranges of all shards, in order, cover all items. Their lengths differ by at most one.
        """
        return total * self.index // self.count, total * (self.index + 1) // self.count

    def owns(self, number: int) -> bool:
        """Returns whether this shard owns item `number`, from 0, if items are dealt out in turn."""
        return number % self.count == self.index

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
