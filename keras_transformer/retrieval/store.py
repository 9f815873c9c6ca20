"""`IndexStore`, the files of an index: texts, what its kind stores for them, and a manifest.

The manifest counts the whole rows. Rows are appended, and count only once the manifest is replaced,
which happens in one step. What a killed process has written after that is cut off by the next one.
"""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_transformer.files import write_json
from keras_transformer.retrieval.dense import DenseIndex
from keras_transformer.retrieval.kinds import KINDS

MANIFEST, TEXTS, ROWS = "index.json", "texts.txt", "rows.bin"
VERSION = 1
ROW = np.dtype([("end", "<i8"), ("line", "<i8")])  # end of the text in bytes, number of its line


class IndexStore:
    """The files of an index.

    Args:
        folder: The folder.

    Raises:
        ValueError: If it holds no index, or a file is damaged or missing.

    Attributes:
        manifest: Dictionary with `kind`; `count`, the number of rows; and what else the index
            states.
        kind: The `IndexKind`.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        path = self.folder / MANIFEST
        if not is_index(folder):
            raise ValueError(f"{folder} holds no index: the file {MANIFEST} is missing.")
        try:
            self.manifest = json.loads(path.read_text("utf-8"))
            version, self.count = self.manifest["version"], int(self.manifest["count"])
            self.kind = KINDS[self.manifest.get("kind", DenseIndex.name)]
            self.kind.check(self.manifest)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: build the index again.") from error
        if version != VERSION:
            raise ValueError(f"{path} is of version {version}; this program reads {VERSION}.")
        for name, size in self._sizes().items():
            file = self.folder / name
            if not file.is_file() or file.stat().st_size < size:
                raise ValueError(f"{file} is damaged or missing: build the index again.")

    @classmethod
    def create(cls, folder, kind, **stated: Any) -> "IndexStore":
        """Creates an index without rows.

        Args:
            folder: The folder, which may exist and must hold no index.
            kind: The `IndexKind`.
            **stated: Further values of the manifest.

        Raises:
            ValueError: If the folder has other files with the names of those of an index.
        """
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        manifest = {"version": VERSION, "kind": kind.name, "count": 0, **stated}
        paths = [folder / name for name in (*kind.sizes(manifest), TEXTS, ROWS)]
        for path in paths:
            if path.exists() and path.stat().st_size:  # such as the file of the texts
                raise ValueError(f"{path} exists and belongs to no index: choose another folder.")
        for path in paths:
            path.write_bytes(b"")
        write_json(folder / MANIFEST, manifest)
        return cls(folder)

    def state(self, **changes: Any) -> None:
        """Changes values of the manifest, in one step."""
        self.manifest = {**self.manifest, **changes}
        write_json(self.folder / MANIFEST, self.manifest)
        self.count = self.manifest["count"]

    def append(self, encoded, texts: Sequence[str], lines: Sequence[int]) -> None:
        """Appends rows; either all of them count afterwards, or none.

        Args:
            encoded: What the kind stores for the texts; see `IndexKind.encode`.
            texts: The texts, without line feeds.
            lines: Numbers of their lines.
        """
        content = [text.encode() + b"\n" for text in texts]
        sizes = self._sizes()
        rows: Any = np.zeros(len(texts), ROW)
        rows["end"] = sizes[TEXTS] + np.cumsum([len(text) for text in content])
        rows["line"] = lines
        parts, changes = self.kind.parts(encoded, self.manifest)
        parts = {**parts, TEXTS: b"".join(content), ROWS: rows.tobytes()}
        for name, data in parts.items():
            path = self.folder / name
            try:
                with path.open("r+b") as file:
                    file.truncate(sizes[name])
                    file.seek(sizes[name])
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                error.filename = error.filename or str(path)
                raise
        self.state(count=self.count + len(texts), **changes)

    def trim(self) -> None:
        """Cuts off what does not count."""
        for name, size in self._sizes().items():
            os.truncate(self.folder / name, size)

    @property
    def rows(self) -> np.ndarray:
        """The records of the rows, of the type `ROW`, mapped from the file."""
        if not self.count:
            return np.zeros(0, ROW)
        return np.memmap(self.folder / ROWS, ROW, "r", shape=(self.count,))

    def texts(self, numbers: Any) -> list[str]:
        """Returns the texts of rows, counted from 0."""
        rows = self.rows
        with (self.folder / TEXTS).open("rb") as file:
            return [self._text(file, rows, int(number)) for number in numbers]

    def all_texts(self, first: int = 0) -> Iterator[tuple[str, int]]:
        """Yields the texts of the rows from `first` on, and the numbers of their lines."""
        rows = self.rows
        with contextlib.closing((self.folder / TEXTS).open("rb")) as file:
            for number in range(first, self.count):
                yield self._text(file, rows, number), int(rows["line"][number])

    def _text(self, file, rows, number):
        begin = int(rows["end"][number - 1]) if number else 0
        file.seek(begin)
        return file.read(int(rows["end"][number]) - begin - 1).decode()

    def _sizes(self):
        """Returns the sizes in bytes of the files with the rows that count."""
        sizes = self.kind.sizes(self.manifest)
        if not self.count:
            return {**sizes, TEXTS: 0, ROWS: 0}
        ends = self.folder / ROWS
        size = self.count * ROW.itemsize
        if not ends.is_file() or ends.stat().st_size < size:
            return {ROWS: size}
        return {**sizes, TEXTS: int(self.rows["end"][-1]), ROWS: size}


def is_index(folder) -> bool:
    """Returns whether a folder holds an index, perhaps an unfinished one."""
    return (pathlib.Path(folder) / MANIFEST).is_file()
