"""`IndexKind`, the interface of a kind of index: what it stores for a text, and how it searches."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from keras_transformer.options import OptionError


class Nearest(NamedTuple):
    """The nearest rows of a query, or of several, in falling order of their scores.

    Attributes:
        scores: Dot products, float32 `[K]`, or `[Q, K]` for Q queries.
        rows: Numbers of the rows, counted from 0, int64. Equal scores are in the order of their
            rows.
    """

    scores: np.ndarray
    rows: np.ndarray


class IndexSearcher(abc.ABC):
    """The opened files of an index."""

    @abc.abstractmethod
    def nearest(self, queries: Any, top: int, exact: bool) -> list[Nearest]:
        """Returns the nearest rows of each query, at most `top`.

        Args:
            queries: Q encoded queries: see `IndexKind.encode_queries`.
            top: Largest number of rows of a query.
            exact: Whether to compare all rows even if there is a faster way.
        """


class IndexKind(abc.ABC):
    """A kind of index.

    The model determines the kind: each belongs to the answers of one task.

    Attributes:
        name: Name of the kind in the manifest.
        task: Name of the task of the models.
        title: What it stores, a noun in the plural, for messages.
        defaults: Dictionary from the names of the options of `TextIndex.build` to their defaults.
    """

    name = task = title = ""
    defaults: ClassVar[dict[str, Any]] = {}

    def settings(self, **options: Any) -> dict[str, Any]:
        """Returns what the manifest states about options, a dictionary.

        Raises:
            ValueError: If an option has no effect, or a value is wrong.
        """
        for name, value in options.items():
            if name not in self.defaults:
                reason = f"has no effect on an index of {self.title}"
                raise OptionError(name, f"{reason}. Received: {name}={value!r}.")
        return self.checked(**{**self.defaults, **options})

    @abc.abstractmethod
    def checked(self, **options: Any) -> dict[str, Any]:
        """Returns the entries of the manifest for values of all options in `defaults`."""

    @abc.abstractmethod
    def encode(self, answering: Any, texts: Sequence[str], batch_size: int) -> Any:
        """Returns what a model answers for texts, a sequence of N."""

    def encode_queries(self, answering: Any, queries: Sequence[str], batch_size: int) -> Any:
        """Returns what a model answers for queries, mostly the same as for texts."""
        return self.encode(answering, queries, batch_size)

    @abc.abstractmethod
    def probes(self, answering: Any) -> list:
        """Returns what a model answers for `PROBES` without a prompt, as plain values."""

    @abc.abstractmethod
    def difference(self, ours: list, theirs: list) -> str | None:
        """Returns how two results of `probes` differ; `None`: they are near each other."""

    @abc.abstractmethod
    def begin(self, probes: list) -> dict[str, Any]:
        """Returns the entries of the manifest of an index without rows."""

    @abc.abstractmethod
    def parts(self, encoded: Any, manifest: dict[str, Any]) -> tuple[dict[str, bytes], dict]:
        """Returns what rows append to files, by their names, and the entries that change."""

    @abc.abstractmethod
    def sizes(self, manifest: dict[str, Any]) -> dict[str, int]:
        """Returns the sizes in bytes of the files that grow, without what does not count."""

    @abc.abstractmethod
    def check(self, manifest: dict[str, Any]) -> None:
        """Raises an error of any kind if an entry is missing or wrong."""

    @abc.abstractmethod
    def finish(self, store: Any) -> dict[str, Any]:
        """Writes the files that the search needs, and returns the entries of the manifest."""

    @abc.abstractmethod
    def open(self, store: Any) -> IndexSearcher:
        """Returns the `IndexSearcher` of a finished index."""

    @abc.abstractmethod
    def described(self, store: Any) -> str:
        """Returns a few words about the size of an index."""
