"""Loaded CTranslate2 models. Only this module imports `ctranslate2`."""

import functools
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.decoding.search import check_search
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.runtime import OpenGenerator, check_threads, reason
from keras_transformer.installation import install_hint
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.pair import vocabulary_files

MODEL, CONFIG = "model.bin", "config.json"
# Keys of the metadata of a model.
FORCED = "forced_eos_id"  # see `TransformerConfig`
GREEDY = "greedy_max_length"  # maximum output length of greedy search
BY_SUM = 1e-9  # length penalty for ranking by the sum; 0 would also stop the search at another step


class CTranslate2Translator(OpenGenerator):
    """A loaded CTranslate2 model that `export_ctranslate2` has written.

    Needs nothing but the folder: the vocabulary is inside. Any number of threads may share it.

    Args:
        path: The folder.
        search: `Greedy`, or a `Beam` that CTranslate2 supports: `extra_length=None`, because it has
            no limit that depends on the source; a `min_length` of 1; and a `normalization` of
            `"average"`, `"none"` or `"power"`, which rank by the mean of the log-probabilities, by
            their sum, or by the sum divided by a power of the length.
        num_threads: Number of threads that CTranslate2 may use in a call. `None`: its default.
        num_parallel_calls: Number of calls from different threads that run at the same time, which
            share the weights; further calls wait. CTranslate2's `inter_threads`.
        compute_type: Option of `ctranslate2.Translator`. With `"float32"` it computes in float32
            even if the weights are quantised.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If ctranslate2 is missing, the folder was not written by `export_ctranslate2`,
            CTranslate2 does not support the search, or a number is out of range.

    Example:
        from keras_transformer import Beam
        search = Beam(4, normalization="average", extra_length=None)
        CTranslate2Translator("model", search).translate_batch(["in 17 weeks"])
    """

    more = "a larger beam returns more"

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
        metadata = _read_metadata(path / CONFIG)
        self.max_length = metadata["max_length"]
        self._forced_eos_id = metadata.get(FORCED)
        try:
            self.tokenizers = source, target = Tokenizers.from_files(functools.partial(_read, path))
        except ValueError as error:
            raise ValueError(f"{path}/{error}") from error
        self._pieces = source.pieces(range(source.vocab_size))
        target_pieces = target.pieces(range(target.vocab_size))
        self._ids = {piece: number for number, piece in enumerate(target_pieces)}
        try:
            self._model = ctranslate2.Translator(
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
        self._limit = limit = int(search.limit(self.max_length, longest))
        if self._forced_eos_id is not None:
            # CTranslate2 has no forced end, so `_ended` appends it.
            limit = max(1, limit - 1)
        self._options = {**options, "min_decoding_length": 0, "max_decoding_length": limit}

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
            source, `eos_id` alone, are padding, because CTranslate2 does not translate it.
        """
        # Without `eos_id`: CTranslate2 adds the end of a source itself.
        batch = [[self._pieces[token] for token in source[:-1]] for source in sources]
        results = self._model.translate_batch(
            batch,
            num_hypotheses=n,
            return_end_token=True,  # also counts it in the length that scores are divided by
            return_scores=True,
            max_input_length=0,
            **self._options,
        )
        pad_id = self.tokenizers.target.pad_id
        tokens = np.full((len(sources), n, self.max_length), pad_id, np.int32)
        scores = np.full((len(sources), n), NONE, np.float32)
        for rows, row_scores, result in zip(tokens, scores, results, strict=True):
            row_scores[: len(result.scores)] = result.scores
            for row, pieces in zip(rows, result.hypotheses, strict=False):  # there may be fewer
                ids = self._ended([self._ids[piece] for piece in pieces])
                row[: len(ids)] = ids
        return tokens, scores

    def has_ended(self, ids: Sequence[int]) -> bool:
        """Returns true if an output has ended by itself, not because it reached the limit."""
        forced = self._forced_eos_id is not None and len(ids) >= self._limit
        return self.tokenizers.target.eos_id in ids and not forced

    def _ended(self, ids):
        """Returns ids of a hypothesis, with the forced end at the limit if the model has one."""
        if self._forced_eos_id is None or len(ids) < self._limit - 1:
            return ids
        ended = ids[-1:] == [self.tokenizers.target.eos_id]
        return ids if ended else [*ids[: self._limit - 1], self._forced_eos_id]


def _options(search):
    """Returns the options of `ctranslate2.Translator.translate_batch` for a search."""
    check_search(search, Greedy, Beam)
    if isinstance(search, Greedy):
        return {"beam_size": 1, "length_penalty": 0}
    by_sum = search.penalty(2) == 1
    FORMATS["ctranslate2"].beams.check(search, any_normalization=by_sum)
    penalty = search.length_penalty if search.normalization == "power" else 1
    return {"beam_size": search.size, "length_penalty": BY_SUM if by_sum else penalty}


def _read_metadata(path):
    try:
        metadata = json.loads(path.read_bytes())
        return {**metadata, "max_length": int(metadata["max_length"])}
    except (ValueError, KeyError, TypeError) as error:  # not JSON, or of another program
        raise ValueError(
            f"{path} is damaged: it has no valid `max_length`. Export the model again."
        ) from error


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
