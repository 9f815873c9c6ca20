"""Loaded CTranslate2 models. Only this module imports `ctranslate2`."""

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.decoding.search import check_search
from keras_transformer.export.ctranslate2.metadata import (
    FIRST,
    FORCED,
    GREEDY,
    LANGUAGES,
    MAX_LENGTH,
    NGRAM,
    is_renormalized,
    read_metadata,
)
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.runtime import OpenGenerator, check_threads, reason
from keras_transformer.installation import install_hint
from keras_transformer.tasks.results import Generated
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.pair import vocabulary_files

MODEL, CONFIG = "model.bin", "config.json"
VOCABULARY = "vocabulary.json"  # only models without a source have it
BY_SUM = 1e-9  # length penalty for ranking by the sum; 0 would also stop the search at another step


class CTranslate2Generator(OpenGenerator):
    """Base class of loaded CTranslate2 models that `export_ctranslate2` has written.

    Needs nothing but the folder: the vocabulary is inside. Any number of threads may share it.

    Args:
        path: The folder.
        search: `Greedy`, or a `Beam` that CTranslate2 supports: `extra_length=None`, because it has
            no limit that depends on the source; a `min_length` of 1; and a `normalization` of
            `"average"`, `"none"` or `"power"`, which rank by the mean of the log-probabilities, by
            their sum, or by the sum divided by a power of the length. A model with
            `no_repeat_ngram` only has `Greedy`.
        num_threads: Number of threads that CTranslate2 may use in a call. `None`: its default.
        num_parallel_calls: Number of calls from different threads that run at the same time, which
            share the weights; further calls wait. CTranslate2's `inter_threads`.
        compute_type: Option of CTranslate2. With `"float32"` it computes in float32 even if the
            weights are quantised.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If ctranslate2 is missing, the folder was not written by `export_ctranslate2`,
            CTranslate2 does not support the search, or a number is out of range.

    Attributes:
        engine: Name of the class of `ctranslate2` that runs the model.
    """

    more = "a larger beam returns more"
    engine = ""

    def __init__(
        self,
        path: str | os.PathLike,
        search: Greedy | Beam = Greedy(),
        num_threads: int | None = None,
        compute_type: str = "default",
        num_parallel_calls: int = 1,
    ):
        ctranslate2 = load_ctranslate2()
        check_threads(num_parallel_calls=num_parallel_calls)
        options = _options(search)
        path = pathlib.Path(path)
        vocabulary = vocabulary_files(lambda name: (path / name).is_file())
        for name in (MODEL, CONFIG, *vocabulary):
            if not (path / name).is_file():
                raise ValueError(
                    f"{path} was not written by `keras-transformer export ctranslate2`, or is "
                    f"damaged: {name} is missing."
                )
        self.metadata = metadata = read_metadata(path / CONFIG)
        self.max_length = metadata[MAX_LENGTH]
        _check_beam(path, search, metadata)
        try:
            self.tokenizers = source, target = Tokenizers.from_files(functools.partial(_read, path))
        except ValueError as error:
            raise ValueError(f"{path}/{error}") from error
        self._pieces, self._target_pieces = (
            side.pieces(range(side.vocab_size)) for side in (source, target)
        )
        self._ids = {piece: number for number, piece in enumerate(self._target_pieces)}
        try:
            self._model = getattr(ctranslate2, self.engine)(
                str(path),
                intra_threads=num_threads or 0,
                inter_threads=num_parallel_calls,
                compute_type=compute_type,
            )
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path} cannot be read by CTranslate2: {reason(error)}") from error
        longest = self.max_length
        if isinstance(search, Greedy):
            longest = min(longest, metadata.get(GREEDY) or longest)
        self._limit = int(search.limit(self.max_length, longest))
        self._options = {**options, "return_end_token": True, "return_scores": True}

    @property
    def n_best(self) -> int:
        """Number of hypotheses of the beam, 1 for greedy search."""
        return self._options["beam_size"]

    def decode(self, sources: list[list[int]], n: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Runs the search on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            n: Number of hypotheses for each source, at most the size of the beam.

        Returns:
            Token ids `[B, n, max_length]`, int32, each row ending in `eos_id`, unless it reached
            the limit, and then padded; and scores `[B, n]`, float32. The outputs for an empty
            source that CTranslate2 does not translate are padding.
        """
        pad_id = self.tokenizers.target.pad_id
        tokens = np.full((len(sources), n, self.max_length), pad_id, np.int32)
        scores = np.full((len(sources), n), NONE, np.float32)
        hypotheses = self._search(sources, n) if sources else []
        for rows, row_scores, (outputs, given) in zip(tokens, scores, hypotheses, strict=True):
            row_scores[: len(given)] = given
            for row, pieces in zip(rows, outputs, strict=False):  # there may be fewer
                ids = self._ended([self._ids[piece] for piece in pieces])
                row[: len(ids)] = ids
        return tokens, scores

    def is_cut(self, ids: Sequence[int]) -> bool:
        """Returns true if an output has ended, if at all, because it reached the limit."""
        return self.tokenizers.target.eos_id not in ids

    def dropped_length(self, source: Sequence[int]) -> int | None:
        """Returns the length of an output that a beam drops unless it is the most probable one.

        It is an output that ends at once after a prompt or a forced token. `None`: there is none.

        Args:
            source: List of token ids, ending in `eos_id`.
        """
        raise NotImplementedError

    def _search(self, sources, n):
        """Returns the hypotheses of each source, as lists of tokens, and their scores."""
        raise NotImplementedError

    def _ended(self, ids):
        """Returns the ids of a hypothesis as this package's searches return them."""
        return ids


class CTranslate2Translator(CTranslate2Generator):
    """A loaded CTranslate2 model that generates a text for a source.

    Args:
        path, search, num_threads, compute_type, num_parallel_calls: See `CTranslate2Generator`.

    Raises:
        TypeError, ValueError: See `CTranslate2Generator`.

    Example:
        from keras_transformer import Beam
        search = Beam(4, normalization="average", extra_length=None)
        CTranslate2Translator("model", search).translate_batch(["in 17 weeks"])
    """

    engine = "Translator"

    def __init__(
        self,
        path: str | os.PathLike,
        search: Greedy | Beam = Greedy(),
        num_threads: int | None = None,
        compute_type: str = "default",
        num_parallel_calls: int = 1,
    ):
        super().__init__(path, search, num_threads, compute_type, num_parallel_calls)
        # CTranslate2 has no forced end, so `_ended` appends it.
        forced = self.metadata[FORCED] is not None
        self._options |= {
            "min_decoding_length": 0,
            "max_decoding_length": max(1, self._limit - 1) if forced else self._limit,
            "max_input_length": 0,
        }
        if is_renormalized(self.metadata):
            target = self.tokenizers.target
            # Such a search emits neither padding nor the token that begins an output.
            padding, end = (self._target_pieces[token] for token in (target.pad_id, target.eos_id))
            silent = {padding, self.metadata["decoder_start_token"] or end} - {end}
            self._options |= {
                "no_repeat_ngram_size": self.metadata[NGRAM],
                "suppress_sequences": [[piece] for piece in sorted(silent)],
            }

    def is_cut(self, ids: Sequence[int]) -> bool:  # noqa: D102
        forced = self.metadata[FORCED] is not None and len(ids) >= self._limit
        return super().is_cut(ids) or forced

    def dropped_length(self, source: Sequence[int]) -> int | None:  # noqa: D102
        _, first = self._read_source(source)
        return len(first) + 1 if first and not self._starts_with_language else None

    def _search(self, sources, n):
        batch, first = map(list, zip(*map(self._read_source, sources), strict=True))
        results = self._model.translate_batch(batch, first, num_hypotheses=n, **self._options)
        if not is_renormalized(self.metadata):
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

    def _ended(self, ids):
        forced = self.metadata[FORCED]
        if forced is None or len(ids) < self._limit - 1:
            return ids
        ended = ids[-1:] == [self.tokenizers.target.eos_id]
        return ids if ended else [*ids[: self._limit - 1], forced]


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

    def _search(self, sources, n):
        begin = self._target_pieces[self.tokenizers.target.bos_id]
        prompts = [[begin, *(self._pieces[token] for token in ids[:-1])] for ids in sources]
        results = self._model.generate_batch(
            prompts, num_hypotheses=n, max_length=self._limit, **self._options
        )
        # The prompt is part of the output, but not the token that begins it.
        return [(result.sequences, result.scores) for result in results]


def open_ctranslate2(path: str | os.PathLike, *args: Any, **kwargs: Any) -> CTranslate2Generator:
    """Returns the loaded model of a folder, of the class that fits the model.

    Args:
        path: The folder.
        *args: See `CTranslate2Generator`.
        **kwargs: See `CTranslate2Generator`.

    Raises:
        TypeError, ValueError: See `CTranslate2Generator`.
    """
    alone = (pathlib.Path(path) / VOCABULARY).is_file()
    return (CTranslate2TextGenerator if alone else CTranslate2Translator)(path, *args, **kwargs)


def _options(search):
    """Returns the options of `ctranslate2.Translator.translate_batch` for a search."""
    check_search(search, Greedy, Beam)
    if isinstance(search, Greedy):
        return {"beam_size": 1, "length_penalty": 0}
    by_sum = search.penalty(2) == 1
    FORMATS["ctranslate2"].beams.check(search, any_normalization=by_sum)
    penalty = search.length_penalty if search.normalization == "power" else 1
    return {"beam_size": search.size, "length_penalty": BY_SUM if by_sum else penalty}


def _check_beam(path, search, metadata):
    """Refuses a beam for a model whose rules change the probabilities in CTranslate2."""
    if isinstance(search, Beam) and is_renormalized(metadata):
        raise ValueError(
            f"`search` must be greedy for {path}: its model has `{NGRAM}`, with which CTranslate2 "
            f"ranks a beam by other probabilities than the model's. Received: search={search!r}."
        )


def load_ctranslate2() -> Any:
    """Returns the package `ctranslate2`.

    Raises:
        ValueError: If it is not installed; the message says how to install it.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise ValueError(
            "CTranslate2 models need the package ctranslate2. Install it with: "
            + install_hint("ctranslate2")
        ) from error
    return ctranslate2


def _read(folder, name):
    """Returns the content of a file in a folder, or `None` if it does not exist."""
    return (folder / name).read_bytes() if (folder / name).is_file() else None
