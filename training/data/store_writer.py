"""Writing of a store: encoded chunks, one file each, which are then merged in sorted order."""

import json
import os
import shutil
import zlib

import numpy as np

from keras_transformer.files import replacing, sync, write_json
from keras_transformer.training.data.checksums import block_checksums
from keras_transformer.training.data.encoding import COUNTS, Column

BLOCK = 2**22  # number of offsets that are summed at a time


class StoreWriter:
    """Writer of a store, in two steps that may be killed at any time.

    First every chunk becomes a file, complete or absent, so that encoding resumes after the last
    one. Then examples are sorted by length and weight, and among equal ones by their order in the
    data set. They are written to a folder that is renamed when it is complete.

    Args:
        encoder: An `Encoder`.
        key: Everything that the store depends on, plain values.
    """

    def __init__(self, encoder, key):
        self._encoder, self._key = encoder, key

    def write(self, folder, part, rows, weights, progress) -> None:
        """Writes a store.

        Args:
            folder: Folder of the store, which does not exist yet.
            part: Folder for incomplete files, perhaps with chunks of a killed process.
            rows: The `tf.data.Dataset` of the examples.
            weights: See `Encoder.chunks`.
            progress: Context manager that returns a function, which shows the number of encoded
                rows.

        Raises:
            ValueError: If no example is left, or one cannot be used.
        """
        part.mkdir(parents=True, exist_ok=True)
        with progress as show:
            paths = self._encode(part, rows, weights, show)
        merge = _Merge([path for path in paths if _counts(path)["examples"]])
        if not merge.size:
            raise ValueError(self._nothing_left(merge, paths))
        draft = part / "whole"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        manifest = merge.write(draft)
        counts = [_counts(path) for path in paths]
        manifest["counts"] = {name: sum(one[name] for one in counts) for name in COUNTS}
        sums = ",".join(str(one["checksum"]) for one in counts)
        manifest["fingerprint"] = f"{zlib.crc32(sums.encode()):08x}"
        write_json(draft / "manifest.json", {**manifest, "key": self._key})
        sync(draft)
        os.replace(draft, folder)
        sync(folder.parent)

    def remove(self, part) -> None:
        """Removes the folder of incomplete files after the store is complete."""
        shutil.rmtree(part, ignore_errors=True)

    def remove_others(self, folder, split) -> None:
        """Removes other stores of a split: of earlier data or with another vocabulary."""
        for path in folder.parent.glob(f"*{split}-*"):
            if path.name not in (folder.name, f".{folder.name}.part"):
                shutil.rmtree(path, ignore_errors=True)

    def _encode(self, part, rows, weights, show):
        """Writes the missing chunks; returns the paths of all chunks."""
        paths = sorted(part.glob("chunk-*.npz"))
        done = sum(_counts(path)["rows"] for path in paths)
        show(done)
        if paths and _counts(paths[-1])["rows"] < self._encoder.chunk:
            return paths
        for chunk in self._encoder.chunks(rows, weights, skip=len(paths)):
            paths.append(part / f"chunk-{len(paths):06d}.npz")
            with replacing(paths[-1]) as temporary:
                _save(temporary, chunk)
            done += chunk.counts["rows"]
            show(done)
        return paths

    def _nothing_left(self, merge, paths):
        counts = [_counts(path) for path in paths]
        empty, too_long = (sum(one[name] for one in counts) for name in ("empty", "too_long"))
        limit = self._key["limits"]["max_length"]
        if limit is None or not (empty or too_long):
            return "The data must contain at least one example. Received: none."
        longest = self._encoder.longest.items()
        others = "".join(f", and at most {most} {name}" for name, most in longest)
        return (
            "The data must contain at least one example with words in each text and at most "
            f"`max_length` tokens{others}. Received: {empty} empty and {too_long} longer examples, "
            f"with max_length={limit}."
        )


class _Merge:
    """Merger of chunks, which sorts examples by length, weight and order in the data set.

    Args:
        paths: Files of the chunks, each with at least one example.
    """

    def __init__(self, paths):
        self._paths = paths
        runs = [_runs(path) for path in paths]  # examples of equal length and weight by chunk
        self.groups = sorted({group for one in runs for group in one})
        place = {group: number for number, group in enumerate(self.groups)}
        counts = np.zeros((len(paths), len(self.groups)), np.int64)
        for number, one in enumerate(runs):
            for group, count in one.items():
                counts[number, place[group]] = count
        self._counts = counts  # [chunks, groups]
        self.size = int(counts.sum())
        before = np.cumsum(counts.sum(axis=0)) - counts.sum(axis=0)  # [groups]
        self._starts = before + np.cumsum(counts, axis=0) - counts  # [chunks, groups]

    def write(self, folder):
        """Writes the files of all columns to a folder; returns the manifest."""
        with np.load(self._paths[0]) as arrays:
            names = [name[:-7] for name in arrays.files if name.endswith("/values")]
        totals = self._counts.sum(axis=0)
        groups = {
            "length": [group[0] for group in self.groups],
            "weight": [group[1] for group in self.groups],
            "count": totals.tolist(),
            "tokens": {},
            "longest": {},
        }
        columns = {}
        for name in names:
            columns[name], tokens, longest = self._column(folder, name)
            if columns[name]["ragged"]:
                groups["tokens"][name], groups["longest"][name] = tokens, longest
        return {"size": self.size, "groups": groups, "columns": columns}

    def _column(self, folder, name):
        first = _load(self._paths[0], name)
        shape, dtype = first.values.shape[1:], first.values.dtype
        ragged = first.lengths is not None
        tokens, longest, offsets = None, None, None
        if ragged:
            tokens, longest = self._write_offsets(folder / f"{name}.offsets", name)
        ends = np.cumsum(self._counts.sum(axis=0) if tokens is None else tokens)
        items = int(ends[-1])
        path = folder / f"{name}.values"
        with open(path, "wb") as file:
            file.truncate(max(items, 1) * dtype.itemsize * int(np.prod(shape)))
            if ragged:
                offsets = np.memmap(folder / f"{name}.offsets", np.int64, "r")
            self._write_values(file, name, offsets)
        del offsets
        column = {"dtype": dtype.name, "shape": list(shape), "items": items, "ragged": ragged}
        # Computed at the end, because every chunk writes to most of the blocks.
        files = {"values": path, **({"offsets": path.with_suffix(".offsets")} if ragged else {})}
        column["checksums"] = {kind: block_checksums(file) for kind, file in files.items()}
        sync(path)
        return column, tokens and [int(n) for n in tokens], longest and [int(n) for n in longest]

    def _write_offsets(self, path, name):
        """Writes the offset of each example; returns item counts and maximum lengths by group."""
        tokens, longest = [0] * len(self.groups), [0] * len(self.groups)
        with open(path, "wb") as file:
            file.truncate(8 * (self.size + 1))
            for number, source in enumerate(self._paths):
                lengths = _load_member(source, f"{name}/lengths").astype(np.int64)
                for group, begin, end, place in self._ranges(number):
                    own = lengths[begin:end]
                    os.pwrite(file.fileno(), own.tobytes(), 8 * (place + 1))
                    tokens[group] += int(own.sum())
                    longest[group] = max(longest[group], int(own.max()))
        with open(path, "r+b", buffering=0) as file:
            total = 0
            for begin in range(0, self.size + 1, BLOCK):
                block = np.frombuffer(os.pread(file.fileno(), 8 * BLOCK, 8 * begin), np.int64)
                sums = total + np.cumsum(block)
                os.pwrite(file.fileno(), sums.tobytes(), 8 * begin)
                total = sums[-1]
        sync(path)
        return tokens, longest

    def _write_values(self, file, name, offsets):
        for number, source in enumerate(self._paths):
            column = _load(source, name)
            ends = None if offsets is None else np.concatenate([[0], np.cumsum(column.lengths)])
            size = column.values.dtype.itemsize * int(np.prod(column.values.shape[1:]))
            for _, begin, end, place in self._ranges(number):
                if ends is not None:
                    begin, end, place = ends[begin], ends[end], int(offsets[place])
                os.pwrite(file.fileno(), column.values[begin:end].tobytes(), place * size)

    def _ranges(self, number):
        """Yields the contiguous ranges of a chunk's examples: (group, begin, end, new begin)."""
        counts = self._counts[number]
        ends = np.cumsum(counts)
        for group in np.flatnonzero(counts).tolist():
            end = int(ends[group])
            yield group, end - int(counts[group]), end, int(self._starts[number, group])


def _save(path, chunk):
    """Writes a chunk as an archive of arrays."""
    arrays = {"counts": np.frombuffer(_json(chunk), np.uint8)}
    arrays |= {"lengths": chunk.lengths, "weights": chunk.weights}
    for name, column in chunk.columns.items():
        arrays[f"{name}/values"] = column.values
        if column.lengths is not None:
            arrays[f"{name}/lengths"] = column.lengths.astype(np.int32)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def _json(chunk):
    return json.dumps({**chunk.counts, "checksum": chunk.checksum}).encode()


def _counts(path):
    return json.loads(_load_member(path, "counts").tobytes())


def _load_member(path, name):
    with np.load(path) as arrays:
        return arrays[name]


def _load(path, name):
    with np.load(path) as arrays:
        lengths = arrays[f"{name}/lengths"] if f"{name}/lengths" in arrays.files else None
        return Column(arrays[f"{name}/values"], lengths)


def _runs(path):
    """Returns the number of examples of each length and weight in a chunk, in sorted order."""
    with np.load(path) as arrays:
        pairs = np.stack([arrays["lengths"].astype(np.float64), arrays["weights"]], axis=1)
    groups, counts = np.unique(pairs, axis=0, return_counts=True)
    return {
        (int(length), float(weight)): int(count)
        for (length, weight), count in zip(groups, counts, strict=True)
    }
