"""Texts of a distillation: the inputs of the teachers and the files of the student's data."""

import dataclasses
import os
import pathlib
from typing import Any

from keras_transformer.files import write_text
from keras_transformer.text.lines import one_line, read_lines
from keras_transformer.training.data.sources.base import SPLITS
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.settings.sources import open_source


@dataclasses.dataclass(frozen=True)
class Texts:
    """Inputs of the teachers.

    Args:
        splits: Dictionary from the name of a split to its sources and its references.
        alone: List of sources without references.
        alone_targets: List of targets without sources.
    """

    splits: dict
    alone: list
    alone_targets: list = dataclasses.field(default_factory=list)

    @classmethod
    def read(cls, settings, monolingual=(), monolingual_targets=()) -> "Texts":
        """Reads the texts of a student's data, and more texts from files.

        Args:
            settings: The `Settings` of the student.
            monolingual: Paths of files with a source on each line.
            monolingual_targets: Paths of files with a target on each line.

        Raises:
            ValueError: If the data or a file cannot be used.
        """
        task = settings.task.get()
        data = open_source(settings.data, task.columns)
        splits = {}
        for split in data.splits:
            columns = read_columns(data, task, split)
            splits[split] = [[one_line(text) for text in column] for column in columns]
        return cls(splits, _lines(monolingual), _lines(monolingual_targets))


def _lines(paths):
    """Returns the lines of files, except those that are empty."""
    lines = [one_line(line) for path in paths for line in read_lines(path)]
    return [line for line in lines if line.strip()]


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

    def read(self, name) -> list[tuple[str, str]]:
        """Returns the pairs of a corpus."""
        return list(zip(*map(read_lines, self.paths(name)), strict=True))

    @property
    def distributions(self) -> pathlib.Path:
        """The folder of word-level targets."""
        return self.folder / "distributions"

    def section(self, data, splits, original=None, word_level=False) -> dict[str, Any]:
        """Returns the `[data]` section that reads the files, a dictionary.

        Args:
            data: The `[data]` section of the student's configuration, for all other keys.
            splits: Names of the splits.
            original: How often an epoch contains each of the original pairs. `None`: never.
            word_level: Whether the student learns predictions of the teachers.
        """
        common = (
            "max_length",
            "batch_tokens",
            "truncate_source",
            "source_language",
            "target_language",
        )
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
        if word_level:
            section["train_distributions"] = _text(self.distributions)
        return section


def _text(path):
    return os.path.abspath(path)
