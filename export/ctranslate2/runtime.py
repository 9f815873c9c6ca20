"""Loaded CTranslate2 models. Only this module imports `ctranslate2`."""

import functools
import json
import pathlib

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
FORCED = "forced_eos_id"  # in the metadata of a model: see `TransformerConfig`
GREEDY = "greedy_max_length"  # there as well: the longest output of greedy search
BY_SUM = 1e-9  # as a length penalty it ranks by the sum; with 0 it also stops at another moment


class CTranslate2Translator(OpenGenerator):
    """A folder written by `export_ctranslate2`; nothing else is needed.

    Any number of threads may share it.

    Args:
        path: The folder.
        search: `Greedy`, or a `Beam` that CTranslate2 has: without a limit that depends on the
            source (`extra_length=None`), a `min_length` of 1, and ranked by the mean or by the sum
            of log-probabilities, or by the sum divided by a power of the length
            (`normalization="average"`, `"none"` or `"power"`).
        num_threads: Threads that CTranslate2 may use in a call. `None`: its default.
        num_parallel_calls: Calls from different threads that run at the same time; others wait.
            They share the weights. CTranslate2's `inter_threads`.
        compute_type: Of `ctranslate2.Translator`: `"float32"` computes in that with the weights of
            a quantised model as well.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If ctranslate2 is missing, the folder is something else, CTranslate2 has no
            such search, or a number is out of range.

    Example:
        from keras_transformer import Beam
        search = Beam(4, normalization="average", extra_length=None)
        CTranslate2Translator("model", search).translate_batch(["in 17 weeks"])
    """

    more = "a wider beam has more"

    def __init__(
        self,
        path,
        search=Greedy(),
        num_threads=None,
        compute_type="default",
        num_parallel_calls=1,
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
        if self._forced_eos_id is not None:  # it has no forced end; that token is put there below
            limit = max(1, limit - 1)
        self._options = {**options, "min_decoding_length": 0, "max_decoding_length": limit}

    @property
    def n_best(self):
        """Hypotheses of its beam."""
        return self._options["beam_size"]

    def decode(self, sources, n=1):
        """Runs the model on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            n: Hypotheses of each, at most the size of the beam.

        Returns:
            Token ids `[B, n, max_length]`, int32, each row ending in `eos_id` and then padding
            (without `eos_id` where the limit came first), and scores `[B, n]`, float32. A source of
            `eos_id` alone gives padding alone: CTranslate2 does not translate nothing.
        """
        # CTranslate2 adds the end of a source by itself.
        batch = [[self._pieces[token] for token in source[:-1]] for source in sources]
        results = self._model.translate_batch(
            batch,
            num_hypotheses=n,
            return_end_token=True,  # and counts it when it divides by the length
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

    def has_ended(self, ids):
        """Returns `True` if CTranslate2 itself generated the end of an output, before a limit."""
        forced = self._forced_eos_id is not None and len(ids) >= self._limit
        return self.tokenizers.target.eos_id in ids and not forced

    def _ended(self, ids):
        """Returns the ids of a hypothesis, with the forced end if it was cut at the limit."""
        if self._forced_eos_id is None or len(ids) < self._limit - 1:
            return ids
        ended = ids[-1:] == [self.tokenizers.target.eos_id]
        return ids if ended else [*ids[: self._limit - 1], self._forced_eos_id]


def _options(search):
    """A search as the options of `ctranslate2.Translator.translate_batch`."""
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
    except (ValueError, KeyError, TypeError) as error:  # neither JSON nor ours
        raise ValueError(
            f"{path} is damaged: it names no `max_length`. Export the model again."
        ) from error


def load_ctranslate2():
    """Returns the package `ctranslate2`.

    Raises:
        ValueError: If it is not installed; the message says how to.
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
    """The content of a file of a folder; `None` where there is none."""
    return (folder / name).read_bytes() if (folder / name).is_file() else None
