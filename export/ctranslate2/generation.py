"""Base class of loaded CTranslate2 models that generate text."""

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.decoding.search import check_search
from keras_transformer.export.ctranslate2.engine import load_ctranslate2, open_engine
from keras_transformer.export.ctranslate2.folder import read_folder
from keras_transformer.export.ctranslate2.format import FORMAT
from keras_transformer.export.ctranslate2.metadata import (
    ENDS,
    GREEDY,
    MAX_LENGTH,
    renormalizing,
)
from keras_transformer.export.runtime import Decoded, OpenGenerator, changed, check_threads
from keras_transformer.options import OptionError

BY_SUM = 1e-9  # length penalty for ranking by the sum; 0 would also stop the search at another step


def options_of_search(search) -> dict[str, Any]:
    """Returns the options for a search of `translate_batch` and `generate_batch`.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If CTranslate2 does not support the search.
    """
    check_search(search, Greedy, Beam)
    if search.repetition_penalty != 1:
        raise ValueError(
            "`repetition_penalty` must be 1 with CTranslate2, whose own penalty also changes the "
            f"scores of other tokens. Received: search={search!r}."
        )
    if search.max_length_ratio is not None:
        raise ValueError(
            "`max_length_ratio` must be None with CTranslate2, which has no limit that depends on "
            f"the source. Received: search={search!r}."
        )
    if isinstance(search, Greedy):
        return {"beam_size": 1, "length_penalty": 0}
    by_sum = search.penalty(2) == 1
    FORMAT.beams.check(search, any_normalization=by_sum)
    penalty = search.length_penalty if search.normalization == "power" else 1
    return {"beam_size": search.size, "length_penalty": BY_SUM if by_sum else penalty}


def check_beam(path, search, metadata) -> None:
    """Refuses a beam for a model whose rules change the probabilities in CTranslate2.

    Raises:
        ValueError: If `search` is a `Beam`, and the model of the folder `path` has such a rule.
    """
    rule = renormalizing(metadata)
    if isinstance(search, Beam) and rule is not None:
        raise ValueError(
            f"`search` must be greedy for {path}: its model has `{rule}`, with which CTranslate2 "
            "ranks a beam by probabilities that differ from the model's. For a beam, export the "
            f"run to another format. Received: search={search!r}."
        )


Kind = TypeVar("Kind", bound="CTranslate2Generator")


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
    opened_with = FORMAT.opened_with
    engine = ""
    task, any_beam = "text generation", True

    def __init__(
        self,
        path: str | os.PathLike,
        search: Greedy | Beam = Greedy(),
        num_threads: int | None = None,
        compute_type: str = "default",
        num_parallel_calls: int = 1,
    ):
        load_ctranslate2()
        check_threads(num_parallel_calls=num_parallel_calls)
        options_of_search(search)  # raises the error before the folder is read
        self.path = path = pathlib.Path(path)
        self.metadata, self.tokenizers = read_folder(path)
        self.max_length = self.metadata[MAX_LENGTH]
        self._take(search)
        self._pieces, self._target_pieces = (
            side.pieces(range(side.vocab_size)) for side in self.tokenizers
        )
        self._ids = {piece: number for number, piece in enumerate(self._target_pieces)}
        threads = num_threads, compute_type, num_parallel_calls
        self._model = open_engine(self.engine, path, *threads)

    def _take(self, search):
        """Sets the search and CTranslate2's options for it."""
        options = options_of_search(search)
        check_beam(self.path, search, self.metadata)
        longest = self.max_length
        if isinstance(search, Greedy):
            longest = min(longest, self.metadata.get(GREEDY) or longest)
        self._most_new = int(search.limit(self.max_length, longest))  # tokens of an output
        self.search, self._search_options = search, options

    @functools.cached_property
    def _common(self):
        """Options of CTranslate2 that do not depend on the search."""
        common: dict[str, Any] = {"return_end_token": True, "return_scores": True}
        if self.metadata[ENDS]:
            ends = self.tokenizers.target.eos_id, *self.metadata[ENDS]
            common["end_token"] = [self._target_pieces[token] for token in ends]
        return {**common, **self._rules()}

    @property
    def _options(self):
        return {**self._search_options, **self._common}

    def with_search(self: Kind, search: Any) -> Kind:
        """Returns a model that differs in its search, with the same engine.

        Raises:
            TypeError, ValueError: See the class.
        """
        other = changed(self)
        other._take(search)
        return other

    def beam_with(self, **settings: Any) -> Beam:
        """Returns a `Beam` that CTranslate2 supports, which ranks by mean log-probability.

        With a `length_penalty` of 0, it ranks by the sum.

        Raises:
            ValueError: If CTranslate2 does not have a setting or its value.
        """
        penalty = settings.get("length_penalty")
        normalization = settings.get("normalization", "none" if penalty == 0 else "average")
        unknown = (
            normalization == "gnmt"
            and "normalization"
            or (penalty and normalization != "power" and "length_penalty")
        )
        if unknown:
            raise OptionError(
                unknown,
                f"has no effect on {self.path}: CTranslate2 does not have this length penalty. "
                "With --beam alone, it ranks outputs by the mean log-probability of their tokens; "
                "with --length-penalty 0, by the sum.",
            )
        return Beam(**{**settings, "normalization": normalization, "extra_length": None})

    @property
    def max_outputs(self) -> int:
        """Number of hypotheses of the beam, 1 for greedy search."""
        return self._search_options["beam_size"]

    def find(self, sources: list[list[int]], n: int = 1) -> Decoded:
        """Runs the search on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            n: Number of hypotheses for each source, at most the size of the beam.

        Returns:
            A `Decoded` with n outputs for each source, which end in `eos_id`, unless they reached
            the limit, and are then padded. The outputs for an empty source that CTranslate2 does
            not continue are padding.
        """
        pad_id = self.tokenizers.target.pad_id
        tokens = np.full((len(sources), n, self.max_length), pad_id, np.int32)
        scores = np.full((len(sources), n), NONE, np.float32)
        complete = np.zeros((len(sources), n), bool)
        hypotheses = self._search(sources, n) if sources else []
        for number, (source, (outputs, given)) in enumerate(zip(sources, hypotheses, strict=True)):
            scores[number, : len(given)] = given
            limit = self.limit(source)
            for place, pieces in enumerate(outputs[:n]):  # there may be fewer
                ids = self._with_one_end([self._ids[piece] for piece in pieces])
                ids = self._ended(ids, limit)
                tokens[number, place, : len(ids)] = ids
                complete[number, place] = not ids or not self.is_incomplete(ids, source)
        return Decoded(tokens, scores, complete)

    def _search(self, sources, n):
        """Returns the hypotheses of each source, as lists of tokens, and their scores, in order.

        CTranslate2 has one limit for a batch, so that sources with equal limits form a batch.
        """
        limits = [self.limit(source) for source in sources]
        results = [None] * len(sources)
        for limit in sorted({*limits}):
            numbers = [number for number, own in enumerate(limits) if own == limit]
            found = self._search_together([sources[number] for number in numbers], n, limit)
            for number, result in zip(numbers, found, strict=True):
                results[number] = result
        return results

    def limit(self, source: Sequence[int]) -> int:
        """Returns the maximum number of tokens of an output, with those that it begins with.

        Args:
            source: List of token ids, ending in `eos_id`.
        """
        return min(self._most_new + self._beginning_length(source), self.max_length)

    def is_incomplete(self, ids: Sequence[int], source: Sequence[int]) -> bool:
        """Returns true if an output has ended, if at all, because it reached the limit.

        Args:
            ids: Token ids of the output.
            source: See `limit`.
        """
        return self.tokenizers.target.eos_id not in ids

    def dropped_length(self, source: Sequence[int]) -> int | None:
        """Returns the length of an output that a beam drops unless it is the most probable one.

        It is an output that ends at once after a prompt or a forced token. `None`: there is none.

        Args:
            source: List of token ids, ending in `eos_id`.
        """
        raise NotImplementedError

    def _rules(self):
        """Returns those options of CTranslate2 that follow from the rules of the model."""
        return {}

    def _beginning_length(self, source):
        """Returns the number of tokens that the output begins with; see `Predictor`."""
        raise NotImplementedError

    def _search_together(self, sources, n, limit):
        """Returns the result of `_search` for sources whose outputs have the same limit."""
        raise NotImplementedError

    def _with_one_end(self, ids):
        """Returns the ids of a hypothesis, with `eos_id` in place of any other end token."""
        ends = ids[-1:] and ids[-1] in self.metadata[ENDS]
        return [*ids[:-1], self.tokenizers.target.eos_id] if ends else ids

    def _ended(self, ids, limit):
        """Returns the ids of a hypothesis as this package's searches return them."""
        return ids
