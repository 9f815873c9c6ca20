"""Loaded CTranslate2 models that continue texts."""

from collections.abc import Sequence

from keras_transformer.decoding import Beam
from keras_transformer.export.ctranslate2.generation import CTranslate2Generator
from keras_transformer.export.ctranslate2.metadata import HIDDEN
from keras_transformer.tasks.results import Generated


class CTranslate2TextGenerator(CTranslate2Generator):
    """A loaded CTranslate2 model that continues texts.

    If no token begins the texts of the model (`attends_to_start` = false), the output for an empty
    prompt is empty, and a beam must have no length penalty.

    Args:
        path, search, num_threads, compute_type, num_parallel_calls: See `CTranslate2Generator`.

    Raises:
        TypeError, ValueError: See `CTranslate2Generator`.
    """

    engine = "Generator"
    result, blank = Generated, False

    def dropped_length(self, source: Sequence[int]) -> int | None:  # noqa: D102
        return len(source)  # its end takes the place of the output's

    def _beginning_length(self, source):
        return len(source) - 1

    def _take(self, search):
        super()._take(search)
        if self.metadata.get(HIDDEN) and isinstance(search, Beam) and search.penalty(2) != 1:
            raise ValueError(
                f"`search` must have no length penalty for {self.path}: no token begins the texts "
                "of its model, and CTranslate2 does not count the first token of a prompt. "
                f"Received: search={search!r}."
            )

    def _search_together(self, sources, n, limit):
        prompts = [[self._pieces[token] for token in ids[:-1]] for ids in sources]
        if self.metadata.get(HIDDEN):
            return self._search_without_start(prompts, n, limit)
        begin = self._target_pieces[self.tokenizers.target.bos_id]
        prompts = [[begin, *prompt] for prompt in prompts]
        options = {"num_hypotheses": n, "max_length": limit, **self._options}
        results = self._model.generate_batch(prompts, **options)
        # The prompt is part of the output, but not the token that begins it.
        return [(result.sequences, result.scores) for result in results]

    def _search_without_start(self, prompts, n, limit):
        """Searches after prompts that no token begins. The output for an empty prompt is empty."""
        full = [prompt for prompt in prompts if prompt]
        length = max(1, limit - 1)  # the first token of a prompt is not counted
        options = {"num_hypotheses": n, "max_length": length, **self._options}
        results = iter(self._model.generate_batch(full, **options) if full else [])
        found = [next(results) if prompt else None for prompt in prompts]
        return [([[]], [0.0]) if row is None else (row.sequences, row.scores) for row in found]
