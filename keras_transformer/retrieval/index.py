"""`TextIndex`: texts that are found by the vectors of a model."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from keras_transformer.checks import check_choice, check_count
from keras_transformer.retrieval import graph
from keras_transformer.retrieval.nearest import Nearest, best, nearest
from keras_transformer.retrieval.probes import difference, probes_of, vectors_of
from keras_transformer.retrieval.store import DTYPES, MANIFEST, VectorStore

BLOCK = 2048  # texts between two states of an index that is being built
SIMILARITIES = ("dot", "cosine")
UNFINISHED = (
    "{folder} is not finished: it has {count:,} texts. Run the same command again, which continues."
)


class Hit(NamedTuple):
    """A text that was found.

    Attributes:
        score: Similarity of its vector and that of the query.
        line: Number of its line, counted from 1.
        text: The text.
    """

    score: float
    line: int
    text: str


class TextIndex:
    """Texts with their vectors in a folder, for search.

    Args:
        folder: The folder.
        answering: The model that built the index, or one of its exports: an `Embedder`, or what
            `keras_transformer.open` returns for it. `None`: vectors are given instead of texts.

    Raises:
        ValueError: If the folder holds no finished index, a file is damaged, or the model gives
            other vectors than that which built the index.
    """

    def __init__(self, folder: Any, answering: Any = None):
        self.store, self.answering = VectorStore(folder), answering
        if not self.store.manifest.get("finished"):
            raise ValueError(UNFINISHED.format(folder=folder, count=self.store.count))
        if answering is not None:
            check_model(answering, self.store)

    def __len__(self) -> int:
        return self.store.count

    @property
    def has_graph(self) -> bool:
        """`True` if the index has a graph for approximate search."""
        return bool(self.store.manifest.get("graph"))

    @functools.cached_property
    def _graph(self):
        return graph.open_graph(self.store.folder, self.store.count)

    @classmethod
    def build(
        cls,
        answering: Any,
        texts: Iterable[str],
        folder: Any,
        append: bool = False,
        dtype: str = "float32",
        similarity: str = "dot",
        approximate: bool = False,
        batch_size: int = 64,
        progress: Callable[[int], None] | None = None,
        **stated: Any,
    ) -> Self:
        """Builds an index, continues one that was interrupted, or appends to a finished one.

        Args:
            answering: A model for embedding, with the prompt of the texts.
            texts: The texts; empty ones are left out, but count as lines.
            folder: The folder.
            append: Whether the texts are added to a finished index.
            dtype: `"float32"` or `"float16"`, half the size.
            similarity: `"dot"`, the dot product, which is the cosine if the model normalises its
                vectors; or `"cosine"`, for a model that does not.
            approximate: Whether to add a graph for approximate search.
            batch_size: Number of texts embedded at a time.
            progress: Function of the number of texts that were added. `None`: no progress.
            **stated: Further values of the manifest, such as the path of the model.

        Raises:
            ValueError: If the folder holds a finished index and `append` is false, or none and it
                is true; or the model, the texts or an option differ from those of an index that is
                continued.
        """
        check_choice("dtype", dtype, tuple(DTYPES))
        check_choice("similarity", similarity, SIMILARITIES)
        if approximate:
            graph.load_usearch()
        given = {"dtype": dtype, "similarity": similarity, "graph": approximate}
        store = _opened(answering, folder, append, {**given, **stated})
        begin, line = store.manifest["begin"], store.manifest["first_line"]
        numbered = ((text, number) for number, text in enumerate(texts, line + 1))
        rest = _after_known(store, numbered, begin)
        last = line
        while block := list(itertools.islice(rest, BLOCK)):
            last = block[-1][1]
            kept = [(text.replace("\n", " "), number) for text, number in block if text.strip()]
            if kept:
                vectors = _scaled(vectors_of(answering, [t for t, _ in kept], batch_size), store)
                store.append(vectors, *zip(*kept, strict=True))
            if progress is not None:
                progress(len(block))
        if approximate:
            graph.extend_graph(folder, store.vectors)
        store.state(finished=True, begin=store.count, first_line=max(last, _last_line(store)))
        return cls(folder)

    def search(
        self, queries: Sequence[str], top: int = 10, exact: bool = False, batch_size: int = 64
    ) -> list[list[Hit]]:
        """Returns the most similar texts of each query, the most similar one first.

        Args:
            queries: Texts.
            top: Largest number of texts for each query.
            exact: Whether to compare all vectors even if the index has a graph.
            batch_size: Number of queries embedded at a time.

        Raises:
            ValueError: If the index was opened without a model.
        """
        if self.answering is None:
            raise ValueError("`answering` must be a model, so that texts can be embedded.")
        check_count("top", top)
        if not len(queries):
            return []
        found = self.nearest(vectors_of(self.answering, queries, batch_size), top, exact)
        lines = self.store.rows["line"]
        return [
            [
                Hit(float(score), int(lines[row]), text)
                for score, row, text in zip(scores, rows, self.store.texts(rows), strict=True)
            ]
            for scores, rows in zip(*found, strict=True)
        ]

    def nearest(self, queries: np.ndarray, top: int = 10, exact: bool = False) -> Nearest:
        """Returns the scores and the rows of the most similar vectors.

        Args:
            queries: Vectors `[Q, D]`.
            top, exact: See `search`.
        """
        queries = _scaled(np.asarray(queries, np.float32), self.store)
        vectors = self.store.vectors
        if exact or not self.has_graph or not len(self):
            return nearest(vectors, queries, top)
        found, wanted = [], min(top, len(self))
        for query, rows in zip(queries, graph.candidates(self._graph, queries, top), strict=True):
            if len(rows) < wanted:  # the graph leads to too few
                found.append(nearest(vectors, query[None], top))
                continue
            scores = np.asarray(vectors[rows], np.float32) @ query  # exact ones
            found.append(best(scores[None], rows[None], top))
        return Nearest(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def check_model(answering: Any, store: VectorStore) -> None:
    """Refuses a model whose vectors are not those of an index.

    Raises:
        ValueError: If the model is for another task or gives other vectors.
    """
    check_task(answering)
    text = difference(store.manifest["probes"], probes_of(answering))
    if text is not None:
        name = store.manifest.get("model") or "another model"
        raise ValueError(
            f"The index in {store.folder} was built by {name}, and this model gives {text}. Build "
            "the index again with this model, or search with that one."
        )


def check_task(answering: Any) -> None:
    """Refuses a model that does not answer with vectors."""
    if answering.task != "embedding":
        raise ValueError(
            "An index needs a model for embedding, which answers with vectors. "
            f"Received: a model for {answering.task}."
        )


def _opened(answering, folder, append, given):
    """Returns the `VectorStore` to add texts to."""
    check_task(answering)
    try:
        store = VectorStore(folder)
    except ValueError as error:
        if "holds no index" not in str(error):
            raise
        store = None
    if store is None and append:
        raise ValueError(f"{folder} holds no index to append to.")
    if store is None:
        probes = probes_of(answering)
        state = {"finished": False, "begin": 0, "first_line": 0, "probes": probes}
        return VectorStore.create(folder, len(probes[0]), **given, **state)
    if store.manifest["finished"] and not append:
        raise ValueError(
            f"{folder} holds a finished index of {store.count:,} texts: append to it, or choose "
            "another folder."
        )
    check_model(answering, store)
    for name, value in given.items():
        if name != "model" and store.manifest.get(name) != value:
            raise ValueError(
                f"`{name}` must be that of the index in {folder}, {store.manifest.get(name)!r}. "
                f"Received: {value!r}."
            )
    if store.manifest["finished"]:
        store.state(finished=False)
    return store


def _after_known(store, numbered, begin) -> Iterator[tuple[str, int]]:
    """Yields the texts after those that an interrupted run has added, which must be the same."""
    for text, line in store.all_texts(begin):
        for other, number in numbered:
            if number < line and not other.strip():
                continue
            if (other.replace("\n", " "), number) == (text, line):
                break
            raise _differs(store, number)
        else:
            raise _differs(store, line)
    yield from numbered


def _differs(store, line):
    return ValueError(
        f"{store.folder / MANIFEST} is not finished, and its text number {line} differs from that "
        "of the input: continue with the same input, or remove the folder."
    )


def _last_line(store):
    return int(store.rows["line"][-1]) if store.count else 0


def _scaled(vectors, store):
    """Returns vectors as they are compared: of unit length for the similarity `"cosine"`."""
    if store.manifest["similarity"] == "dot":
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
