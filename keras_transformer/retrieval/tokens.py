"""`TokenIndex`, the kind of index of a vector for each token of a text, for late interaction."""

import functools
from typing import Any, ClassVar

import numpy as np

from keras_transformer.checks import check_choice
from keras_transformer.retrieval import graph
from keras_transformer.retrieval.dense import DTYPES, VECTORS, dtype_of
from keras_transformer.retrieval.kind import IndexKind, IndexSearcher, Nearest
from keras_transformer.retrieval.nearest import best
from keras_transformer.retrieval.probes import PROBES, difference

ENDS = "ends.bin"  # for each text the number of vectors up to its end, int64
END = np.dtype("<i8")
BLOCK_VALUES = 2**22  # of the vectors that are read at a time, 16 MiB in float32
TEXTS, QUERIES = "passages", "queries"  # parts of an example: see `PassAnswering.answer_part`


class TokenIndex(IndexKind):
    """Vectors of the tokens of texts; the score of a query and a text is MaxSim.

    The options are `dtype`, `"float32"` or `"float16"`, half the size; and `approximate`, whether
    there is a graph of the vectors, which leads to the texts that are compared.
    """

    name, task, title = "tokens", "late_interaction", "vectors of tokens"
    defaults: ClassVar[dict[str, Any]] = {"dtype": "float32", "approximate": False}

    def checked(self, dtype, approximate) -> dict[str, Any]:  # noqa: D102  # ty: ignore[incompatible-method-override]
        check_choice("dtype", dtype, tuple(DTYPES))
        if approximate:
            graph.load_usearch()
        return {"dtype": dtype, "graph": approximate}

    def encode(self, answering, texts, batch_size) -> list[np.ndarray]:
        """Returns the vectors of the tokens of each text, float32 `[tokens, N]`."""
        return answering.part_vectors(TEXTS, list(texts), batch_size)

    def encode_queries(self, answering, queries, batch_size) -> list[np.ndarray]:
        """Returns the vectors of the tokens of each query, float32 `[tokens, N]`."""
        return answering.part_vectors(QUERIES, list(queries), batch_size)

    def probes(self, answering) -> list:  # noqa: D102
        vectors = self.encode(answering, PROBES, len(PROBES))
        return [rows.sum(axis=0).tolist() for rows in vectors]

    def difference(self, ours, theirs) -> str | None:  # noqa: D102
        return difference(np.array(ours, float), np.array(theirs, float))

    def begin(self, probes) -> dict[str, Any]:  # noqa: D102
        return {"dimensions": len(probes[0]), "vectors": 0}

    def parts(self, encoded, manifest) -> tuple[dict[str, bytes], dict]:  # noqa: D102
        ends = manifest["vectors"] + np.cumsum([len(rows) for rows in encoded], dtype=END)
        vectors = np.concatenate(encoded).astype(dtype_of(manifest))
        return {VECTORS: vectors.tobytes(), ENDS: ends.tobytes()}, {"vectors": int(ends[-1])}

    def sizes(self, manifest) -> dict[str, int]:  # noqa: D102
        size = manifest["dimensions"] * dtype_of(manifest).itemsize
        return {VECTORS: manifest["vectors"] * size, ENDS: manifest["count"] * END.itemsize}

    def check(self, manifest) -> None:  # noqa: D102
        dtype_of(manifest), int(manifest["dimensions"]), int(manifest["vectors"])

    def finish(self, store) -> dict[str, Any]:  # noqa: D102
        if store.manifest["graph"]:
            graph.extend_graph(store.folder, _vectors_of(store))
        return {}

    def open(self, store) -> "TokenSearcher":  # noqa: D102
        return TokenSearcher(store)

    def described(self, store) -> str:  # noqa: D102
        return f"{store.manifest['vectors']:,} vectors of {store.manifest['dimensions']} features"


class TokenSearcher(IndexSearcher):
    """The vectors of an index, and its graph if it has one.

    Args:
        store: The `IndexStore`.

    Raises:
        ValueError: If the file of the ends is damaged.
    """

    def __init__(self, store):
        self.store, self.vectors, self.count = store, _vectors_of(store), store.count
        path = store.folder / ENDS
        ends = np.fromfile(path, END, self.count)
        self.bounds = np.concatenate([[0], ends])  # [N + 1]
        if self.bounds[-1] != len(self.vectors) or (np.diff(self.bounds) < 0).any():
            raise ValueError(f"{path} is damaged or missing: build the index again.")

    @functools.cached_property
    def _graph(self):
        return graph.open_graph(self.store.folder, len(self.vectors))

    def nearest(self, queries, top, exact) -> list[Nearest]:
        """Returns the nearest rows of queries, arrays `[tokens, N]`.

        Args:
            queries, top, exact: See `IndexSearcher.nearest`.
        """
        if exact or not self.store.manifest["graph"] or not len(self.vectors):
            return self._nearest_of_all(queries, top)
        found, wanted = [], min(top, self.count)
        for query in queries:
            near = np.concatenate(graph.candidates(self._graph, query, top))
            rows = np.unique(np.searchsorted(self.bounds, near, side="right") - 1)
            if len(rows) < wanted:  # the graph leads to too few
                found += self._nearest_of_all([query], top)
                continue
            begins, ends = self.bounds[rows], self.bounds[rows + 1]
            chosen = np.concatenate(
                [np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)]
            )
            vectors = np.asarray(self.vectors[chosen], np.float32)
            scores = max_sims(vectors, ends - begins, query)
            found.append(_few(scores, rows, top))
        return found

    def _nearest_of_all(self, queries, top):
        found = [Nearest(np.zeros(0, np.float32), np.zeros(0, np.int64)) for _ in queries]
        for first, end in self._blocks():
            part = self.vectors[self.bounds[first] : self.bounds[end]]
            vectors = np.asarray(part, np.float32)  # [T, N]
            lengths = np.diff(self.bounds[first : end + 1])
            for number, query in enumerate(queries):
                scores = max_sims(vectors, lengths, query)
                pairs = zip(found[number], (scores, np.arange(first, end)), strict=True)
                found[number] = _few(*map(np.concatenate, pairs), top)
        return found

    def _blocks(self):
        """Yields the first row and the end of each block, at least one text."""
        most, first = max(1, BLOCK_VALUES // self.store.manifest["dimensions"]), 0
        while first < self.count:
            limit = self.bounds[first] + most
            end = max(first + 1, int(np.searchsorted(self.bounds, limit, side="right")) - 1)
            yield first, end
            first = end


def max_sims(vectors, lengths, query) -> np.ndarray:
    """Returns the MaxSim of a query with texts, float32 `[P]`; 0 for a text without vectors.

    Args:
        vectors: The vectors of P texts, one text after the other, float32 `[T, N]`.
        lengths: Number of vectors of each text, `[P]`.
        query: The vectors of the query, `[Q, N]`.

    Reference: Khattab and Zaharia (2020), "ColBERT: Efficient and Effective Passage Search via
        Contextualized Late Interaction over BERT", Eq. 3.
    """
    scores, some = np.zeros(len(lengths), np.float32), lengths > 0
    if not some.any():
        return scores
    products = vectors @ np.asarray(query, np.float32).T  # [T, Q]
    begins = (np.cumsum(lengths) - lengths)[some]
    scores[some] = np.maximum.reduceat(products, begins, axis=0).sum(axis=1)
    return scores


def _few(scores, rows, top):
    """Returns the `Nearest` of the `top` largest of scores `[P]` with their rows `[P]`."""
    few = best(scores[None], rows[None], top)
    return Nearest(few.scores[0], few.rows[0])


def _vectors_of(store):
    """Returns the vectors of all tokens, `[T, N]`, mapped from the file."""
    shape = store.manifest["vectors"], store.manifest["dimensions"]
    if not shape[0]:
        return np.zeros(shape, dtype_of(store.manifest))
    return np.memmap(store.folder / VECTORS, dtype_of(store.manifest), "r", shape=shape)
