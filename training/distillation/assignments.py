"""Work of the teachers: the texts that each ensemble translates, and the pairs that result."""

import dataclasses
import hashlib


@dataclasses.dataclass(frozen=True)
class Assignment:
    """Texts that one teacher, or an ensemble of teachers, translates.

    Args:
        name: Name of the folder for its outputs.
        teachers: List of `Teacher`s.
        inputs: List of the texts to translate.
        references: List of the reference of each input, or `None` for an input without one.
        is_backward: Whether the inputs are targets of the student, and the outputs its sources.
    """

    name: str
    teachers: list
    inputs: list
    references: list
    is_backward: bool = False

    def pairs(self, results, keep_truncated) -> list[tuple[str, str]]:
        """Returns the pairs of source and target that the student can learn.

        Args:
            results: List of the output for each of the `inputs`, and whether the input was
                truncated.
            keep_truncated: Whether a forward teacher's outputs for truncated sources are learned;
                the student truncates the same sources. A backward teacher's outputs for truncated
                targets never are, because they lack the source of the rest.
        """
        keep_truncated = keep_truncated and not self.is_backward
        kept = [
            (text, output)
            for text, (output, truncated) in zip(self.inputs, results, strict=True)
            if output.strip() and (keep_truncated or not truncated)
        ]
        return [(output, text) for text, output in kept] if self.is_backward else kept


def assign(texts, forward, backward, separate) -> list[Assignment]:
    """Returns the assignments of all teachers.

    Args:
        texts: The `Texts` of the distillation.
        forward: List of `Teacher`s that translate sources.
        backward: List of `Teacher`s that translate targets back.
        separate: Whether each teacher translates alone. If not, the teachers of a direction are an
            ensemble.

    Raises:
        ValueError: If there are no teachers, or an option would have no effect.
    """
    if not forward and not backward:
        raise ValueError("`teachers` must not be empty without backward teachers.")
    if separate and max(len(forward), len(backward)) < 2:
        raise ValueError("`separate` has no effect: it needs two or more teachers of a direction.")
    for teachers, lines, rest in (
        (forward, texts.alone, "`monolingual` needs a teacher that translates sources."),
        (backward, texts.alone_targets, "`monolingual_targets` needs a backward teacher."),
    ):
        if lines and not teachers:
            raise ValueError(rest)
    sources, targets = texts.splits["train"]
    assignments = []
    for name, teachers, inputs, references, alone in (
        ("forward", forward, sources, targets, texts.alone),
        ("backward", backward, targets, sources, texts.alone_targets),
    ):
        groups = [[teacher] for teacher in teachers] if separate else [teachers]
        assignments += [
            Assignment(
                f"{name}-{number}" if separate else name,
                group,
                [*inputs, *alone],
                [*references, *[None] * len(alone)],
                name == "backward",
            )
            for number, group in enumerate(groups, start=1)
            if group
        ]
    return assignments


def digest(texts, references=()) -> str:
    """Returns a checksum of the inputs of teachers and, if given, their references."""
    checksum = hashlib.sha256()
    for column in (texts, references):
        for text in column:
            if text is not None:
                checksum.update(text.encode() + b"\n")
        checksum.update(b"\0")
    return checksum.hexdigest()


def distinct(pairs, known=()) -> list[tuple[str, str]]:
    """Returns each different pair once, in order, except those that are `known`."""
    known = set(known)
    return [pair for pair in dict.fromkeys(pairs) if pair not in known]
