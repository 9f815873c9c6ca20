"""Texts of a distillation: the inputs of the teachers and the files of the student's data."""

import dataclasses
import hashlib
import os
import pathlib
from typing import Any

from keras_transformer.files import write_text
from keras_transformer.text.lines import one_line, read_lines
from keras_transformer.training.data.sources import SPLITS, open_source
from keras_transformer.training.evaluate import read_columns


@dataclasses.dataclass(frozen=True)
class Texts:
    """Inputs of the teachers.

    Args:
        splits: Dictionary from the name of a split to its sources and its references.
        alone: List of sources without references.
    """

    splits: dict
    alone: list

    @classmethod
    def read(cls, settings, monolingual=()) -> "Texts":
        """Reads the texts of a student's data, and more sources from files.

        Args:
            settings: The `Settings` of the student.
            monolingual: Paths of files with a source on each line.

        Raises:
            ValueError: If the data or a file cannot be used.
        """
        task = settings.task.get()
        data = open_source(settings.data, task.columns)
        splits = {}
        for split in data.splits:
            columns = read_columns(data, task, split)
            splits[split] = [[one_line(text) for text in column] for column in columns]
        lines = [one_line(line) for path in monolingual for line in read_lines(path)]
        return cls(splits, [line for line in lines if line.strip()])

    @property
    def sources(self) -> list[str]:
        """All sources that the teachers read."""
        return [*self.splits["train"][0], *self.alone]

    @property
    def references(self) -> list[str | None]:
        """The reference of each of the `sources`, or `None`."""
        return [*self.splits["train"][1], *[None] * len(self.alone)]

    def digest(self, references=False) -> str:
        """Returns a checksum of the sources; with `references`, of these as well."""
        checksum = hashlib.sha256()
        for column in (self.sources, self.splits["train"][1] if references else []):
            for text in column:
                checksum.update(text.encode() + b"\n")
            checksum.update(b"\0")
        return checksum.hexdigest()


class Files:
    """Files of a student's data in the folder of a distillation, two for each corpus.

    Args:
        folder: The folder, a `Path`.
    """

    def __init__(self, folder):
        self.folder = folder

    def paths(self, name) -> tuple[pathlib.Path, pathlib.Path]:
        """Returns the paths of a corpus's sources and targets."""
        return self.folder / f"{name}.source", self.folder / f"{name}.target"

    def write(self, name, sources, targets) -> None:
        """Writes a corpus; each file is complete or absent."""
        for path, lines in zip(self.paths(name), (sources, targets), strict=True):
            write_text(path, "".join(f"{line}\n" for line in lines))

    def section(self, data, splits, original=None) -> dict[str, Any]:
        """Returns the `[data]` section that reads the files, a dictionary.

        Args:
            data: The `[data]` section of the student's configuration, for all other keys.
            splits: Names of the splits.
            original: How often an epoch contains each of the original pairs. `None`: never.
        """
        common = ("max_length", "batch_tokens", "cut_source", "source_language", "target_language")
        values = {name: getattr(data, name, None) for name in common}
        section = {"source": "text"} | {k: v for k, v in values.items() if v is not None}
        if None in (section.get("source_language"), section.get("target_language")):
            section.pop("source_language", None), section.pop("target_language", None)
        for split in SPLITS[1:]:
            if split in splits:
                source, target = self.paths(split)
                section |= {f"{split}_source": _text(source), f"{split}_target": _text(target)}
        corpora = ["train"] if original is None else ["train", "original"]
        pairs = [[_text(path) for path in self.paths(name)] for name in corpora]
        section["train_source"], section["train_target"] = map(list, zip(*pairs, strict=True))
        if original is not None:
            section["train_weights"] = [1.0, float(original)]
        return section


def _text(path):
    return os.path.abspath(path)
