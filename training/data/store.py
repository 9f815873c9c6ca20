"""Stores: memory-mapped files of the encoded examples of a split."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.files import read_json, write_json
from keras_transformer.lock import FolderLock, FolderLocked
from keras_transformer.tensors import Tensor
from keras_transformer.training.data.checksums import BlockVerifier, damaged
from keras_transformer.training.data.encoding import Encoder
from keras_transformer.training.data.sources.base import numbered_example
from keras_transformer.training.data.store_writer import StoreWriter

MANIFEST = "manifest.json"
FORMAT = 2  # version of the file format; a store of another version is written again
WAIT = 0.5  # seconds between two checks of a store that another process is writing


class Store:
    """Encoded examples, sorted by length, then by weight.

    Each column is a file `NAME.values` of all items. A ragged column also has a file
    `NAME.offsets`: the first item of each example, and the number of all items. The files are
    mapped into memory, so that only needed parts are read and memory does not grow with the corpus.
    Each block of a file is verified when it is first read.

    Args:
        folder: Folder of the store.
        fields: Dictionary of the `Field`s of its columns.

    Attributes:
        manifest: The content of `manifest.json`: `size`, the number of rows; `groups` of rows with
            equal length and weight (lists of `length`, `weight`, `count`, and by column of `tokens`
            and `longest`); `counts` of rows read and left out; `columns` with `dtype`, `shape`,
            `items`, `ragged` and the `checksums` of their files, see `block_checksums`;
            `fingerprint`; and `key`.

    Raises:
        DamagedStore: If a file is missing or its size differs from the manifest.
        ValueError: If the folder has no manifest, or the manifest cannot be read.
    """

    temporary: Any = None  # a temporary folder, which is removed with the store

    def __init__(self, folder, fields):
        self.folder, self.fields = Path(folder), fields
        self._arrays = {}  # mapped files that have been read, by column and kind
        self._verifiers = {}  # verifiers of these files
        self.manifest = read_json(self.folder / MANIFEST)
        if self.manifest is None:
            raise ValueError(f"{self.folder} is not a store: it has no {MANIFEST}.")
        self.size = self.manifest["size"]
        for name, column in self.manifest["columns"].items():
            for path, count, dtype, shape in self._files(name, column):
                expected = count * math.prod(shape) * np.dtype(dtype).itemsize
                if not path.is_file() or path.stat().st_size != expected:
                    raise damaged(path, f"it must have {expected:,} bytes")

    def gather(self, numbers, widths, names=None) -> dict[str, Tensor]:
        """Returns some rows of columns; runs in a graph.

        Args:
            numbers: Numbers of the rows, integers `[B]`.
            widths: Dictionary of the lengths to which ragged columns are padded.
            names: Names of the columns. `None`: all fields.

        Returns:
            Dictionary of `[B, *item_shape]`, or `[B, width, *item_shape]` for a ragged column;
            int32, or float32 for numbers that are not integers.

        Raises:
            DamagedStore: When the rows are read, if their files are damaged. In a graph TensorFlow
                wraps it in another error: see `plain_damage`.
        """
        names = list(self.fields) if names is None else list(names)
        if not names:
            return {}

        def read(numbers, *widths):
            sizes = dict(zip(names, widths, strict=True))
            return [self._read(name, numbers, sizes[name]) for name in names]

        # Python, because TensorFlow's `ImmutableConst` copies a whole file whenever it is run.
        types = [_plain_type(self.manifest["columns"][name]["dtype"]) for name in names]
        arrays = tf.numpy_function(
            read, [numbers, *(widths.get(name, 0) for name in names)], types, stateful=False
        )
        arrays = tf.nest.flatten(arrays)  # a single array is not in a list in eager execution
        for name, array in zip(names, arrays, strict=True):
            field = self.fields[name]
            array.set_shape([None, *[None] * field.is_ragged, *field.item_shape])
        return dict(zip(names, arrays, strict=True))

    def _read(self, name, numbers, width):
        """Returns some rows of a column, an array."""
        values, field = self._mapped(name, "values"), self.fields[name]
        kind = _plain_type(values.dtype).as_numpy_dtype
        if not field.is_ragged:
            self._verify(name, "values", numbers, numbers + 1)
            return values[numbers].astype(kind)
        begins, ends = self._bounds(name, numbers)
        self._verify(name, "values", begins, ends)
        places = begins[:, None] + np.arange(width)
        inside = places < ends[:, None]  # [B, width]
        items = values[np.where(inside, places, 0)].astype(kind)
        items[~inside] = field.padding
        return items

    def texts(self, name, numbers) -> list[bytes]:
        """Returns the strings of some rows, a list of bytes: see `Encoder`. Not for graphs."""
        name = f"{name}.text"
        items = self._mapped(name, "values")
        begins, ends = self._bounds(name, np.asarray(numbers))
        self._verify(name, "values", begins, ends)
        pairs = zip(begins.tolist(), ends.tolist(), strict=True)
        return [items[begin:end].tobytes() for begin, end in pairs]

    def _bounds(self, name, numbers):
        """Returns the first item and the end of some rows of a ragged column."""
        offsets = self._mapped(name, "offsets")
        self._verify(name, "offsets", numbers, numbers + 2)
        return offsets[numbers], offsets[numbers + 1]

    def _verify(self, name, kind, begins, ends):
        """Raises a `DamagedStore` if items in some ranges of a file have changed."""
        array, verifier = self._arrays[name, kind], self._verifiers[name, kind]
        if not verifier.is_complete:
            size = array.itemsize * math.prod(array.shape[1:])
            verifier.verify(begins * size, ends * size)

    def _files(self, name, column):
        """Yields the files of a column: path, number of items, dtype and shape of an item."""
        items = self.folder / f"{name}.values"
        yield items, max(column["items"], 1), column["dtype"], column["shape"]
        if column["ragged"]:
            yield self.folder / f"{name}.offsets", self.size + 1, "int64", []

    def _mapped(self, name, kind):
        """Returns a memory-mapped file of a column as an array."""
        if (name, kind) not in self._arrays:
            column = self.manifest["columns"][name]
            for path, count, dtype, shape in self._files(name, column):
                key = name, path.suffix[1:]
                content = np.asarray(np.memmap(path, np.uint8, "r"))
                self._verifiers[key] = BlockVerifier(path, content, column["checksums"][key[1]])
                self._arrays[key] = content.view(dtype).reshape(count, *shape)
        return self._arrays[name, kind]


@dataclasses.dataclass(frozen=True)
class Stores:
    """The folder that contains the stores of a run.

    Args:
        folder: Path of the folder. `None`: a temporary folder for each store.
        console: The `rich.console.Console` that shows the progress of writing, or `None`.
        shared: Whether other runs use the folder as well. If not, stores of earlier data are
            removed.
    """

    folder: Path | None = None
    console: Any = None
    shared: bool = False

    def take(
        self,
        rows,
        training,
        limits,
        *,
        split,
        place=None,
        weights=None,
        texts=(),
        data=None,
        total=None,
    ) -> Store:
        """Returns the store of a split, and writes it first if there is none.

        If another process is writing it, the call waits. A store that a killed process left
        unfinished is completed.

        Args:
            rows: Function without arguments that returns a `tf.data.Dataset` of tuples, one field
                for each column. It is not called if there is a store.
            training: The `Training`.
            limits: `Limits`.
            split: Name of the split.
            place: See `Encoder`. `None`: errors name the split and the number of the example.
            weights: Function without arguments that returns how often an epoch contains each of the
                rows, an array or `None`.
            texts: Names of the columns whose strings are stored as well.
            data: Everything that the rows depend on, plain values; part of the key. `None`: the
                store is temporary.
            total: Number of rows, or a function that returns it, for the progress bar. `None`: it
                is unknown.

        Raises:
            ValueError: If no example is left, or one cannot be used.
        """
        key = {
            "format": FORMAT,
            "data": data,
            "split": split,
            "fields": training.identity(),
            "limits": dataclasses.asdict(limits),
            "texts": list(texts),
        }
        place = place or functools.partial(numbered_example, split)
        writer = StoreWriter(Encoder(training, limits, place, texts), key)
        make = _Making(rows, weights, self.console, total, split)
        if self.folder is None or data is None:
            return _temporary(writer, make, training.fields)
        folder = Path(self.folder) / f"{split}-{digest(key)}"
        self._write(folder, writer, make)
        if not self.shared:
            writer.remove_others(folder, split)
        return Store(folder, training.fields)

    def recall(self, key) -> dict[str, Any] | None:
        """Returns the dictionary that was remembered for a key, or `None`."""
        return None if self.folder is None else read_json(self._note(key))

    def remember(self, key, content) -> None:
        """Keeps a dictionary of plain values for later calls.

        Args:
            key: Everything that the content depends on, plain values.
            content: The dictionary.
        """
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self._note(key), content)

    def _note(self, key):
        return Path(self.folder, f"data-{digest(key)}.json")

    def _write(self, folder, writer, make):
        """Writes a store, or waits until another process has written it."""
        waiting = False
        while not (folder / MANIFEST).is_file():
            part = folder.with_name(f".{folder.name}.part")
            try:
                with FolderLock(part):
                    if not (folder / MANIFEST).is_file():
                        writer.write(folder, part, *make())
            except FolderLocked:
                if not waiting and self.console is not None:
                    self.console.print(f"Waiting for {folder}, which another process is writing.")
                waiting = True
                time.sleep(WAIT)
            else:
                writer.remove(part)


@dataclasses.dataclass(frozen=True)
class _Making:
    """Inputs for writing a store: see `Stores.take`."""

    rows: Callable[[], Any]
    weights: Callable[[], Any] | None
    console: Any
    total: int | Callable[[], int] | None
    split: str

    def __call__(self):
        weights = None if self.weights is None else self.weights()
        total = self.total() if callable(self.total) else self.total
        return self.rows(), weights, self._progress(total)

    @contextlib.contextmanager
    def _progress(self, total):
        """Context manager of a function that shows the number of encoded rows."""
        if self.console is None:
            yield lambda rows: None
            return
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*shown, TimeRemainingColumn(), console=self.console) as progress:
            task = progress.add_task(f"Encoding the {self.split} split", total=total)
            yield lambda rows: progress.update(task, completed=rows)


def _temporary(writer, make, fields):
    """Returns a store in a temporary folder, which is removed with it."""
    folder = tempfile.TemporaryDirectory(prefix="keras-transformer-")
    path = Path(folder.name)
    writer.write(path / "store", path / "part", *make())
    writer.remove(path / "part")
    store = Store(path / "store", fields)
    store.temporary = folder
    return store


def digest(key) -> str:
    """Returns a hash of plain values for a file name."""
    text = json.dumps(key, sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain_type(dtype):
    return tf.float32 if tf.as_dtype(dtype).is_floating else tf.int32
