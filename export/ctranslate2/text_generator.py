"""Loaded CTranslate2 models that continue texts."""

from collections.abc import Sequence

from keras_transformer.export.ctranslate2.generation import CTranslate2Generator
from keras_transformer.tasks.results import Generated


class CTranslate2TextGenerator(CTranslate2Generator):
    """A loaded CTranslate2 model that continues texts.

    Args:
        path, search, num_threads, compute_type, num_parallel_calls: See `CTranslate2Generator`.

    Raises:
        TypeError, ValueError: See `CTranslate2Generator`.
    """

    result, blank, engine = Generated, False, "Generator"

    def dropped_length(self, source: Sequence[int]) -> int | None:  # noqa: D102
        return len(source)  # its end takes the place of the output's

    def _limits(self):
        return {"max_length": self._limit}

    def _search(self, sources, n):
        begin = self._target_pieces[self.tokenizers.target.bos_id]
        prompts = [[begin, *(self._pieces[token] for token in ids[:-1])] for ids in sources]
        results = self._model.generate_batch(prompts, num_hypotheses=n, **self._options)
        # The prompt is part of the output, but not the token that begins it.
        return [(result.sequences, result.scores) for result in results]
