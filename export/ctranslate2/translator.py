"""Loaded CTranslate2 models that generate a text for a source, or continue one."""

from collections.abc import Sequence

from keras_transformer.decoding import Beam
from keras_transformer.decoding.limits import limits_of
from keras_transformer.export.ctranslate2.generation import CTranslate2Generator
from keras_transformer.export.ctranslate2.metadata import (
    FACTOR,
    FIRST,
    FORCED,
    HIDDEN,
    LANGUAGES,
    NGRAM,
    SUPPRESSED,
    renormalizing,
)
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


class CTranslate2Translator(CTranslate2Generator):
    """A loaded CTranslate2 model that generates a text for a source.

    Args:
        path, search, num_threads, compute_type, num_parallel_calls: See `CTranslate2Generator`.

    Raises:
        TypeError, ValueError: See `CTranslate2Generator`.

    Example:
        from keras_transformer import Beam
        search = Beam(4, normalization="average", extra_length=None)
        CTranslate2Translator("model", search).answer_batch(["in 17 weeks"])
    """

    engine, has_source = "Translator", True

    def limit(self, source: Sequence[int]) -> int:  # noqa: D102
        limit, factor = super().limit(source), self.metadata[FACTOR]
        if factor is None:
            return limit
        return min(limit, int(limits_of(len(source), factor, self.max_length)))

    def is_incomplete(self, ids: Sequence[int], source: Sequence[int]) -> bool:  # noqa: D102
        forced = self.metadata[FORCED] is not None and len(ids) >= self.limit(source)
        return super().is_incomplete(ids, source) or forced

    def dropped_length(self, source: Sequence[int]) -> int | None:  # noqa: D102
        _, first = self._read_source(source)
        return len(first) + 1 if first and not self._starts_with_language else None

    def _beginning_length(self, source):
        first, languages = self.metadata[FIRST], self.metadata[LANGUAGES]
        return int(first is not None or languages in ("before", "after"))

    def _rules(self):
        rules = {"min_decoding_length": 0, "max_input_length": 0}
        if renormalizing(self.metadata) is None:
            return rules
        target = self.tokenizers.target
        # Such a search emits neither padding nor the token that begins an output.
        ids = target.pad_id, target.eos_id, *self.metadata[SUPPRESSED]
        padding, end, *others = (self._target_pieces[token] for token in ids)
        suppressed = {padding, self.metadata["decoder_start_token"] or end, *others} - {end}
        return rules | {
            "no_repeat_ngram_size": self.metadata[NGRAM],
            "suppress_sequences": [[piece] for piece in sorted(suppressed)],
        }

    def _search_together(self, sources, n, limit):
        batch, first = map(list, zip(*map(self._read_source, sources), strict=True))
        # CTranslate2 has no forced end, so `_ended` appends it.
        length = limit if self.metadata[FORCED] is None else max(1, limit - 1)
        options = {"num_hypotheses": n, "max_decoding_length": length, **self._options}
        results = self._model.translate_batch(batch, first, **options)
        if renormalizing(self.metadata) is None:
            return [(result.hypotheses, result.scores) for result in results]
        hypotheses = [result.hypotheses[0] for result in results]
        scores = self._scores(batch, first, hypotheses)
        pairs = zip(hypotheses, scores, strict=True)
        return [([tokens], [score]) for tokens, score in pairs]

    def _read_source(self, ids):
        """Returns the tokens that the encoder reads, and those with which the output begins.

        CTranslate2 adds the end of a source itself, unless another token comes after it.
        """
        text, first = ids[:-1], []
        if self.metadata[LANGUAGES] != "none":
            if not {*text[:2]} <= {*self.tokenizers.languages.ids.values()} or len(text) < 2:
                raise ValueError(
                    "`sources` must begin with the tokens of the target's and of their own "
                    f"language. Received: {ids[:3]}."
                )
            target, source, *words = text
            text, first = [source, *words], [target]
            if self.metadata[LANGUAGES] != "before":
                text = [*words, self.tokenizers.source.eos_id, source]
        elif self.metadata[FIRST] is not None:
            first = [self.metadata[FIRST]]
        return [self._pieces[token] for token in text], [self._target_pieces[t] for t in first]

    def _scores(self, batch, first, hypotheses):
        """Returns the log-probability of each output as the model gives it, without rules.

        A forced first token has a probability of 1.
        """
        rows, forced = hypotheses, len(first[0])
        if self._starts_with_language:  # with the decoder's first input in front
            rows, forced = [[*pair[0], *pair[1]] for pair in zip(first, rows, strict=True)], 0
        results = self._model.score_batch(batch, rows, max_input_length=0)
        rows = zip(results, hypotheses, strict=True)
        return [sum(result.log_probs[forced : len(tokens)]) for result, tokens in rows]

    @property
    def _starts_with_language(self):
        return self.metadata[LANGUAGES] == "start"

    def _ended(self, ids, limit):
        forced = self.metadata[FORCED]
        if forced is None or len(ids) < limit - 1:
            return ids
        ended = ids[-1:] == [self.tokenizers.target.eos_id]
        return ids if ended else [*ids[: limit - 1], forced]
