"""Loaded exports whose results depend on the numbers of their inputs: samples, prefixes."""

from collections.abc import Sequence
from typing import Any

from keras_transformer.export.runtime import OpenGenerator
from keras_transformer.tasks.answering import Progress
from keras_transformer.tasks.strings import map_numbered


class NumberedGenerator(OpenGenerator):
    """Base class of loaded exports that pass the number of each input on to `_generate`."""

    def answer(  # noqa: D102
        self,
        inputs: Any,
        search: Any = None,
        batch_size: int = 64,
        progress: Progress = None,
        numbers: Sequence[int] | None = None,
    ) -> Any:
        rows = self.n_best(inputs, 1, search, batch_size, numbers, progress)
        return rows[0] if self.is_one(inputs) else [best for best, *_ in rows]

    def n_best(  # noqa: D102
        self,
        inputs: Any,
        n: int,
        search: Any = None,
        batch_size: int = 64,
        numbers: Sequence[int] | None = None,
        progress: Progress = None,
    ) -> list:
        other = self if search is None else self.with_search(search)
        one = self.is_one(inputs)
        sentences = self.check_inputs([inputs] if one else inputs)

        def generate(texts, numbers):
            return other.n_best_batch(texts, n, numbers)

        rows = map_numbered(generate, sentences, numbers, batch_size, progress)
        return rows[0] if one else rows

    def n_best_batch(
        self, inputs: Sequence[str], n: int, numbers: Sequence[int] | None = None
    ) -> list[list]:
        """Returns up to `n` different `result`s for each string of a list, the best first."""
        return super().n_best_batch(inputs, n, numbers=numbers)
