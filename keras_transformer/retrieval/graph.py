"""A graph of near vectors (HNSW) beside an index; the only module that imports usearch."""

import pathlib
from typing import Any

import numpy as np

from keras_transformer.files import replacing
from keras_transformer.installation import install_hint

GRAPH = "graph.usearch"
ADDED = 8192  # vectors at a time
CANDIDATES = 4  # candidates for each result, whose scores are then computed exactly


def load_usearch() -> Any:
    """Returns the module `usearch.index`.

    Raises:
        ValueError: If it is not installed.
    """
    try:
        import usearch.index
    except ImportError as error:
        raise ValueError(
            "A graph of vectors needs the package usearch. Install it with: "
            + install_hint("search")
        ) from error
    return usearch.index


def extend_graph(folder, vectors) -> None:
    """Writes the graph of all vectors of an index; those of an earlier graph are not added again.

    Args:
        folder: Folder of the index.
        vectors: Array `[N, D]`.

    Reference: Malkov and Yashunin (2018), "Efficient and robust approximate nearest neighbor search
        using Hierarchical Navigable Small World graphs".
    """
    path, package = pathlib.Path(folder) / GRAPH, load_usearch()
    kind = "f16" if vectors.dtype == np.float16 else "f32"
    graph = package.Index(ndim=vectors.shape[1], metric="ip", dtype=kind)
    if path.is_file():
        graph.load(str(path))
    for first in range(len(graph), len(vectors), ADDED):
        part = np.asarray(vectors[first : first + ADDED])
        graph.add(np.arange(first, first + len(part), dtype=np.uint64), part)
    with replacing(path) as temporary:
        graph.save(str(temporary))


def open_graph(folder, count) -> Any:
    """Returns the graph of an index, mapped from its file.

    Args:
        folder: Folder of the index.
        count: Number of vectors that it must have.

    Raises:
        ValueError: If the file is missing, damaged or of another state of the index.
    """
    path = pathlib.Path(folder) / GRAPH
    graph = load_usearch().Index.restore(str(path), view=True) if path.is_file() else None
    if graph is None or len(graph) != count:
        raise ValueError(f"{path} is missing or does not belong to this index: build it again.")
    return graph


def candidates(graph, queries, top) -> list[np.ndarray]:
    """Returns for each query the rows that are probably nearest, at least `top` if there are."""
    count = min(CANDIDATES * top, len(graph))
    found = graph.search(np.ascontiguousarray(queries, np.float32), count)
    keys = np.asarray(found.keys).reshape(len(queries), -1)
    counts = getattr(found, "counts", [keys.shape[1]])  # a search may find fewer than it should
    return [row[:known].astype(np.int64) for row, known in zip(keys, counts, strict=True)]
