"""`SparseIndex`, the kind of index of sparse vectors: an inverted index, exact.

While texts are added, their weights are appended to one file. At the end they become a segment:
postings sorted by token, in a file that is mapped into memory. Every later `append` adds a segment.
"""

from typing import Any, NamedTuple

import numpy as np

from keras_transformer.files import replacing
from keras_transformer.postings import Postings, scores_of
from keras_transformer.retrieval.kind import IndexKind, IndexSearcher, Nearest
from keras_transformer.retrieval.nearest import best
from keras_transformer.retrieval.probes import PROBES, difference

PENDING = "vectors.bin"
ENTRY = np.dtype([("row", "<i4"), ("token", "<i4"), ("weight", "<f4")])
AT_ONCE = 2**22  # entries that are sorted at a time, 48 MiB
RESERVED = 2**24  # bytes that are written at a time


class SparseIndex(IndexKind):
    """Postings of the texts of each token; the search reads those of the tokens of a query."""

    name, task, title = "sparse", "sparse_embedding", "sparse vectors"

    def checked(self, **options: Any) -> dict[str, Any]:  # noqa: D102
        return options  # there are none

    def encode(self, answering, texts, batch_size) -> list:
        """Returns the `SparseVector`s of texts."""
        return answering.answer(list(texts), batch_size=batch_size)

    def probes(self, answering) -> list:  # noqa: D102
        vectors = self.encode(answering.with_settings(prompt=""), PROBES, len(PROBES))
        return [[vector.ids.tolist(), vector.weights.tolist()] for vector in vectors]

    def difference(self, ours, theirs) -> str | None:  # noqa: D102
        size = 1 + max((max(ids, default=0) for ids, _ in (*ours, *theirs)), default=0)
        dense = np.zeros((2, len(PROBES), size))
        for side, vectors in zip(dense, (ours, theirs), strict=True):
            for row, (ids, weights) in zip(side, vectors, strict=True):
                row[ids] = weights
        return difference(*dense)

    def begin(self, probes) -> dict[str, Any]:  # noqa: D102
        return {"pending": 0, "segments": []}

    def parts(self, encoded, manifest) -> tuple[dict[str, bytes], dict]:  # noqa: D102
        entries: Any = np.zeros(sum(len(vector.ids) for vector in encoded), ENTRY)
        rows = range(manifest["count"], manifest["count"] + len(encoded))
        entries["row"] = np.repeat(rows, [len(vector.ids) for vector in encoded])
        entries["token"] = np.concatenate([vector.ids for vector in encoded])
        entries["weight"] = np.concatenate([vector.weights for vector in encoded])
        return {PENDING: entries.tobytes()}, {"pending": manifest["pending"] + len(entries)}

    def sizes(self, manifest) -> dict[str, int]:  # noqa: D102
        return {PENDING: manifest["pending"] * ENTRY.itemsize}

    def check(self, manifest) -> None:  # noqa: D102
        int(manifest["pending"]), [PostingsFile(**entry) for entry in manifest["segments"]]

    def finish(self, store) -> dict[str, Any]:  # noqa: D102
        segments, pending = store.manifest["segments"], store.manifest["pending"]
        if not pending:
            return {}
        entries = np.memmap(store.folder / PENDING, ENTRY, "r", shape=(pending,))
        segment = write_segment(store.folder / _name(len(segments)), entries)
        return {"segments": [*segments, segment._asdict()], "pending": 0}

    def open(self, store) -> "SparseSearcher":  # noqa: D102
        return SparseSearcher(store)

    def described(self, store) -> str:  # noqa: D102
        return f"{sum(entry['postings'] for entry in store.manifest['segments']):,} weights"


class PostingsFile(NamedTuple):
    """The sizes of the postings in a file, a segment of an index.

    Attributes:
        tokens: Number of tokens V.
        postings: Number of postings P.
    """

    tokens: int
    postings: int

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return 8 * (self.tokens + 1) + 8 * self.postings

    def reserve(self, path) -> None:
        """Writes a file of this size, because a full disk ends a process that writes to a mapping.

        Raises:
            OSError: If the disk is full.
        """
        with open(path, "wb") as file:
            for first in range(0, self.size, RESERVED):
                file.write(bytes(min(RESERVED, self.size - first)))

    def open(self, path, mode="r") -> tuple[Any, Any, Any]:
        """Returns offsets `[V + 1]`, rows `[P]` and weights `[P]`, mapped from a file."""
        data = np.memmap(path, "uint8", mode, shape=(self.size,))
        offsets, postings = np.split(data, [8 * (self.tokens + 1)])
        rows, weights = np.split(postings, 2)
        return offsets.view("<i8"), rows.view("<i4"), weights.view("<f4")


class SparseSearcher(IndexSearcher):
    """The segments of an index.

    Args:
        store: The `IndexStore`.

    Raises:
        ValueError: If a file is damaged or missing.
    """

    def __init__(self, store):
        self.count, self.segments = store.count, []
        for number, entry in enumerate(store.manifest["segments"]):
            path, segment = store.folder / _name(number), PostingsFile(**entry)
            if not path.is_file() or path.stat().st_size != segment.size:
                raise ValueError(f"{path} is damaged or missing: build the index again.")
            self.segments.append(Postings(*segment.open(path), self.count))

    def nearest(self, queries, top, exact=True) -> list[Nearest]:
        """Returns the nearest rows of `SparseVector`s, all of which share a token with the query.

        Args:
            queries, top, exact: See `IndexSearcher.nearest`.
        """
        found = []
        for query in queries:
            scores = scores_of(self.segments, query.ids, query.weights, self.count)
            rows = np.flatnonzero(scores > 0)  # [R]
            few = best(scores[rows].astype("float32")[None], rows[None], top)
            found.append(Nearest(few.scores[0], few.rows[0]))
        return found


def write_segment(path, entries, at_once=AT_ONCE) -> PostingsFile:
    """Writes entries as postings, sorted by token and then by row, and returns their sizes.

    Args:
        path: The file.
        entries: Array of the type `ENTRY`, sorted by row, at least one.
        at_once: Number of entries that are sorted at a time.
    """
    parts = [slice(first, first + at_once) for first in range(0, len(entries), at_once)]
    size = 1 + max(int(entries["token"][part].max()) for part in parts)
    counts = sum(np.bincount(entries["token"][part], minlength=size) for part in parts)
    segment = PostingsFile(size, len(entries))
    with replacing(path) as temporary:
        segment.reserve(temporary)
        offsets, rows, weights = segment.open(temporary, "r+")
        offsets[1:] = np.cumsum(counts)
        free = np.array(offsets[:-1])  # where the next posting of each token belongs
        for part in parts:
            tokens = np.asarray(entries["token"][part])
            order = np.argsort(tokens, kind="stable")
            tokens = tokens[order]
            begins = np.searchsorted(tokens, tokens)  # of the group of each token
            places = free[tokens] + np.arange(len(tokens)) - begins
            rows[places] = entries["row"][part][order]
            weights[places] = entries["weight"][part][order]
            free += np.bincount(tokens, minlength=size)
        offsets.flush()
    return segment


def _name(number):
    return f"postings-{number}.bin"
