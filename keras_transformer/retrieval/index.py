"""`TextIndex`: texts that are found by the vectors of a model."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from keras_transformer.checks import check_count
from keras_transformer.lock import FolderLock
from keras_transformer.retrieval.kind import IndexSearcher, Nearest
from keras_transformer.retrieval.kinds import kind_of
from keras_transformer.retrieval.store import MANIFEST, IndexStore, is_index

BLOCK = 2048  # texts between two states of an index that is being built
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
        answering: The model that built the index, or one of its exports: an `Embedder`, a
            `SparseEmbedder` or a `LateInteractionRanker`, or what `keras_transformer.open` returns
            for it. `None`: vectors are given instead of texts.

    Raises:
        ValueError: If the folder holds no finished index, a file is damaged, or the model's vectors
            differ from the vectors of the model that built the index.
    """

    def __init__(self, folder: Any, answering: Any = None):
        self.store, self.answering = IndexStore(folder), answering
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

    @property
    def described(self) -> str:
        """A few words about what the index stores."""
        return self.store.kind.described(self.store)

    @functools.cached_property
    def searcher(self) -> IndexSearcher:
        """The opened files."""
        return self.store.kind.open(self.store)

    @classmethod
    def build(
        cls,
        answering: Any,
        texts: Iterable[str],
        folder: Any,
        append: bool = False,
        batch_size: int = 64,
        progress: Callable[[int], None] | None = None,
        model: str | None = None,
        prompt: str | None = None,
        **options: Any,
    ) -> Self:
        """Builds an index, continues one that was interrupted, or appends to a finished one.

        Args:
            answering: A model for embedding, sparse embedding or late interaction, with the prompt
                of the texts. It determines the kind of index.
            texts: The texts; empty ones are left out, but count as lines.
            folder: The folder.
            append: Whether the texts are added to a finished index.
            batch_size: Number of texts embedded at a time.
            progress: Function of the number of texts that were added. `None`: no progress.
            model: Path of the model, which the index states.
            prompt: Name of the prompt, which the index states.
            **options: Options of the kind: see `DenseIndex` and `TokenIndex`. A `SparseIndex` has
                none.

        Raises:
            ValueError: If the folder holds a finished index and `append` is false, or none and it
                is true; or the model, the texts or an option differ from those of an index that is
                continued; or an option has no effect on this kind of index.
            FolderLocked: An `OSError`, if another process writes into the folder.
        """
        settings = kind_of(answering).settings(**options)
        if append and not is_index(folder):
            raise ValueError(f"{folder} holds no index to append to.")
        with FolderLock(folder) as lock:
            given = {**settings, "model": model, "prompt": prompt}
            store = _opened(answering, folder, append, given)
            _add(store, answering, texts, batch_size, progress, lock)
        return cls(folder)

    def search(
        self, queries: Sequence[str], top: int = 10, exact: bool = False, batch_size: int = 64
    ) -> list[list[Hit]]:
        """Returns the most similar texts of each query, the most similar one first.

        Args:
            queries: Texts.
            top: Maximum number of texts for each query.
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
        encoded = self.store.kind.encode_queries(self.answering, list(queries), batch_size)
        lines = self.store.rows["line"]
        return [
            [
                Hit(float(score), int(lines[row]), text)
                for score, row, text in zip(scores, rows, self.store.texts(rows), strict=True)
            ]
            for scores, rows in self.nearest(encoded, top, exact)
        ]

    def nearest(self, queries: Any, top: int = 10, exact: bool = False) -> list[Nearest]:
        """Returns the scores and the rows of the most similar texts of each query.

        Args:
            queries: What the model answers for Q queries: vectors `[Q, D]`, `SparseVector`s, or a
                list of arrays `[tokens, N]`.
            top, exact: See `search`.
        """
        return self.searcher.nearest(queries, top, exact)


def check_model(answering: Any, store: IndexStore) -> None:
    """Refuses a model whose vectors are not those of an index.

    Raises:
        ValueError: If the model is for another task or gives other vectors.
    """
    kind = kind_of(answering)
    if kind is not store.kind:
        raise ValueError(
            f"The index in {store.folder} is one of {store.kind.title}. "
            f"Received: a model for {answering.task}."
        )
    text = kind.difference(store.manifest["probes"], kind.probes(answering))
    if text is not None:
        name = store.manifest.get("model") or "another model"
        raise ValueError(
            f"The index in {store.folder} was built by {name}, and this model gives {text}. Build "
            "the index again with this model, or search with that one."
        )


def _opened(answering, folder, append, given):
    """Returns the `IndexStore` to add texts to."""
    if not is_index(folder):
        kind = kind_of(answering)
        probes = kind.probes(answering)
        state = {"finished": False, "begin": 0, "first_line": 0, "probes": probes}
        return IndexStore.create(folder, kind, **given, **kind.begin(probes), **state)
    store = IndexStore(folder)
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


def _add(store, answering, texts, batch_size, progress, lock):
    """Adds texts to an `IndexStore` and finishes it."""
    begin, line = store.manifest["begin"], store.manifest["first_line"]
    numbered = ((text, number) for number, text in enumerate(texts, line + 1))
    rest = _after_known(store, numbered, begin)
    last = line
    while block := list(itertools.islice(rest, BLOCK)):
        last = block[-1][1]
        kept = [(text.replace("\n", " "), number) for text, number in block if text.strip()]
        if kept:
            encoded = store.kind.encode(answering, [text for text, _ in kept], batch_size)
            lock.check()
            store.append(encoded, *zip(*kept, strict=True))
        if progress is not None:
            progress(len(block))
    entries = store.kind.finish(store)
    lock.check()  # it may have taken long
    last = max(last, _last_line(store))
    store.state(finished=True, begin=store.count, first_line=last, **entries)
    store.trim()


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
