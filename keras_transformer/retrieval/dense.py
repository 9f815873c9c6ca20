"""`DenseIndex`, the kind of index of vectors of a fixed length."""

import functools
from typing import Any, ClassVar

import numpy as np

from keras_transformer.checks import check_choice
from keras_transformer.retrieval import graph
from keras_transformer.retrieval.kind import IndexKind, IndexSearcher, Nearest
from keras_transformer.retrieval.nearest import best, nearest
from keras_transformer.retrieval.probes import PROBES, difference

VECTORS = "vectors.bin"
DTYPES = {"float32": np.float32, "float16": np.float16}
SIMILARITIES = ("dot", "cosine")


class DenseIndex(IndexKind):
    """Vectors of one length, a row of a file for each text; the search compares all of them.

    The options are `dtype`, `"float32"` or `"float16"`, half the size; `similarity`, `"dot"`, the
    dot product, which is the cosine if the model normalises its vectors, or `"cosine"`, for a model
    that does not; and `approximate`, whether there is a graph for approximate search.
    """

    name, task, title = "dense", "embedding", "dense vectors"
    defaults: ClassVar[dict[str, Any]] = {
        "dtype": "float32",
        "similarity": "dot",
        "approximate": False,
    }

    def checked(self, dtype, similarity, approximate) -> dict[str, Any]:  # noqa: D102  # ty: ignore[incompatible-method-override]
        check_choice("dtype", dtype, tuple(DTYPES))
        check_choice("similarity", similarity, SIMILARITIES)
        if approximate:
            graph.load_usearch()
        return {"dtype": dtype, "similarity": similarity, "graph": approximate}

    def encode(self, answering, texts, batch_size) -> np.ndarray:
        """Returns the vectors of texts, float32 `[N, D]`."""
        results = answering.answer(list(texts), batch_size=batch_size)
        return np.array([result.values for result in results], np.float32)

    def probes(self, answering) -> list:  # noqa: D102
        return self.encode(answering.with_settings(prompt=""), PROBES, len(PROBES)).tolist()

    def difference(self, ours, theirs) -> str | None:  # noqa: D102
        return difference(np.array(ours, float), np.array(theirs, float))

    def begin(self, probes) -> dict[str, Any]:  # noqa: D102
        return {"dimensions": len(probes[0])}

    def parts(self, encoded, manifest) -> tuple[dict[str, bytes], dict]:  # noqa: D102
        values = _scaled(encoded, manifest)
        return {VECTORS: np.ascontiguousarray(values, dtype_of(manifest)).tobytes()}, {}

    def sizes(self, manifest) -> dict[str, int]:  # noqa: D102
        return {VECTORS: manifest["count"] * manifest["dimensions"] * dtype_of(manifest).itemsize}

    def check(self, manifest) -> None:  # noqa: D102
        dtype_of(manifest), int(manifest["dimensions"]), manifest["similarity"]

    def finish(self, store) -> dict[str, Any]:  # noqa: D102
        if store.manifest["graph"]:
            graph.extend_graph(store.folder, vectors_of(store))
        return {}

    def open(self, store) -> "DenseSearcher":  # noqa: D102
        return DenseSearcher(store)

    def described(self, store) -> str:  # noqa: D102
        return f"{store.manifest['dimensions']} features"


class DenseSearcher(IndexSearcher):
    """The vectors of an index, and its graph if it has one.

    Args:
        store: The `IndexStore`.
    """

    def __init__(self, store):
        self.store, self.vectors = store, vectors_of(store)

    @functools.cached_property
    def _graph(self):
        return graph.open_graph(self.store.folder, self.store.count)

    def nearest(self, queries, top, exact) -> list[Nearest]:
        """Returns the nearest rows of vectors `[Q, D]`; see `IndexSearcher.nearest`."""
        queries = _scaled(np.asarray(queries, np.float32), self.store.manifest)
        if exact or not self.store.manifest.get("graph") or not len(self.vectors):
            found = nearest(self.vectors, queries, top)
            return [Nearest(*pair) for pair in zip(*found, strict=True)]
        found, wanted = [], min(top, len(self.vectors))
        for query, rows in zip(queries, graph.candidates(self._graph, queries, top), strict=True):
            if len(rows) < wanted:  # the graph leads to too few
                scores, rows = nearest(self.vectors, query[None], top)
            else:  # exact scores
                products = np.asarray(self.vectors[rows], np.float32) @ query
                scores, rows = best(products[None], rows[None], top)
            found.append(Nearest(scores[0], rows[0]))
        return found


def vectors_of(store) -> np.ndarray:
    """Returns the vectors of an index, `[N, D]`, mapped from the file."""
    shape = store.count, store.manifest["dimensions"]
    if not store.count:
        return np.zeros(shape, dtype_of(store.manifest))
    return np.memmap(store.folder / VECTORS, dtype_of(store.manifest), "r", shape=shape)


def dtype_of(manifest) -> np.dtype:
    """Returns the type of the numbers of an index."""
    return np.dtype(DTYPES[manifest["dtype"]])


def _scaled(vectors, manifest):
    """Returns vectors as they are compared: of unit length for the similarity `"cosine"`."""
    if manifest["similarity"] == "dot":
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
