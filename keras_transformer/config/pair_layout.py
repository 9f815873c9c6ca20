"""Layouts of a row of tokens that holds two texts, such as a question and a passage."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class PairLayout:
    """The marks around a question and a passage, and how the passage is tokenised.

    In every layout the row ends in `eos_id`. In question answering, its only `bos_id` stands for
    "no answer in this row".

    Args:
        name: Name of the layout, the value of `pair_layout`.
        begins: Whether the row begins with `bos_id`.
        separator: `"bos_id"` or `"eos_id"`, the id between question and passage.
        separators: Number of separators.
        whole: Whether a passage is tokenised as a whole, with answers that begin and end with any
            token and are extended to whole words, instead of segment by segment.
    """

    name: str
    begins: bool
    separator: str
    separators: int
    whole: bool

    @property
    def marks(self) -> int:
        """Number of ids of a row that are neither of the question nor of the passage."""
        return self.begins + self.separators + 1

    @property
    def ends(self) -> int:
        """Number of times that `eos_id` occurs in a row."""
        return 1 + self.separators * (self.separator == "eos_id")

    @property
    def smallest(self) -> int:
        """Smallest limit of a row, in tokens: half for a question, and a token of a passage."""
        return 2 * self.marks + 1

    def prefix(self, question) -> Any:
        """Returns the index at which the passage begins.

        Args:
            question: Number of the question's tokens, an integer or a tensor.
        """
        return question + (self.begins + self.separators)

    def described(self, bos_id="bos", eos_id="eos") -> str:
        """Returns the parts of a row in words.

        Args:
            bos_id, eos_id: The ids, or their names.
        """
        ids = {"bos_id": f"the id {bos_id}", "eos_id": f"the id {eos_id}"}
        parts = [ids["bos_id"]] * self.begins + ["a question"]
        parts += [ids[self.separator]] * self.separators
        return ", ".join([*parts, "a passage"]) + f", and {ids['eos_id']}"


LAYOUTS = {
    layout.name: layout
    for layout in (
        PairLayout("separator", begins=False, separator="bos_id", separators=1, whole=False),
        PairLayout("bert", begins=True, separator="eos_id", separators=1, whole=True),
        PairLayout("roberta", begins=True, separator="eos_id", separators=2, whole=True),
    )
}
