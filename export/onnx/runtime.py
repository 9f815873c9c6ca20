"""Loaded .onnx files of models that generate text."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.decoding.search import check_search
from keras_transformer.decoding.stored import EXPORTED, from_dict
from keras_transformer.export.fixed_searches import check_fixed, fixed_greedy
from keras_transformer.export.metadata import METADATA, SEARCH, reading
from keras_transformer.export.numbered import NumberedGenerator
from keras_transformer.export.onnx.format import FORMAT
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.sampling import values_of
from keras_transformer.export.open_file import OpenFile, beam_inputs
from keras_transformer.export.runtime import Decoded, changed, padded
from keras_transformer.export.source_ids import check_source_ids
from keras_transformer.export.worded import OpenWordIds
from keras_transformer.tasks.results import COMPLETE, TOKEN_SCORES

ALIGNMENT = "alignment"  # an output


class OnnxTranslator(OpenWordIds, OpenFile, NumberedGenerator):
    """A loaded .onnx file of a model that generates text.

    Needs nothing but the file: the vocabulary is inside. Any number of threads may share it.

    Args:
        model: The `OnnxModel`.

    Raises:
        ValueError: If the file holds another kind of model or is damaged.

    Attributes:
        search: The search: that of the export; or a `Beam` with another `length_penalty`,
            `extra_length` or `max_length`; or any `Sample` if the export has one.
    """

    opened_with = FORMAT.opened_with

    def __init__(self, model: OnnxModel):
        self.path, self.metadata, self.tokenizers = model.path, model.metadata, model.tokenizers
        self.take_task()
        self._model = model
        with reading(self.path, METADATA):
            self.search = self._held = from_dict(self.metadata[SEARCH], EXPORTED)
            self._n_best = int(self.metadata["n_best"])

    def with_search(self, search: Any) -> "OnnxTranslator":
        """Returns a file that differs in its search, with the same model.

        Args:
            search: A `Greedy`, a `Beam` of the size of the export's, or a `Sample`.

        Raises:
            TypeError: If `search` is something else.
            ValueError: If the file does not have this search.
        """
        check_search(search, Greedy, Beam, Sample)
        return changed(self, search=self._checked(search))

    def _checked(self, search):
        """Returns a search that the file has."""
        held: Any = self._held
        if _kind(search) != _kind(held):
            option = f" {search.size}" if isinstance(search, Beam) else ""
            raise ValueError(
                f"{self.path} was exported for {_kind(held)} only. Export it again with "
                f"--{search.word}{option}. Received: search={search!r}."
            )
        if isinstance(search, Beam):
            FORMAT.beams.check(search)
            check_fixed(search, held, self.path)
        elif isinstance(search, Greedy):
            return fixed_greedy(search, held, self.path)
        else:
            check_fixed(search, held, self.path, "max_length_ratio")
        return search

    def beam_with(self, **settings: Any) -> Beam:
        """Returns the `Beam` of the export with some settings changed."""
        held = self._held if isinstance(self._held, Beam) else Beam()
        return dataclasses.replace(held, **settings)

    def sample_with(self, **settings: Any) -> Sample:  # noqa: D102
        held = self._held if isinstance(self._held, Sample) else Sample()
        return dataclasses.replace(held, **settings)

    @property
    def aligns(self) -> bool:  # noqa: D102
        return ALIGNMENT in self._model.outputs

    def _check_alignment(self):
        self.check_no_words("align")
        if not self.aligns or self.has_languages:
            raise ValueError(
                "Alignments need a file for one pair of languages that was exported with "
                "--alignment."
            )

    @property
    def max_outputs(self) -> int:
        """Number of hypotheses that the search returns."""
        return self._n_best

    def _generate(self, sentences, n=1, numbers=None):
        words = self.word_inputs(sentences, numbers)
        return super()._generate(sentences, n, numbers=numbers, words=words)

    def find(
        self,
        sources: list[list[int]],
        n: int = 1,
        numbers: Sequence[int] | None = None,
        words: dict[str, np.ndarray] | None = None,
    ) -> Decoded:
        """Runs the search on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            n: Has no effect: the file returns all M hypotheses.
            numbers: For a `Sample`, one integer of 32 bits for each source. `None`: its index.
            words: Arrays of the words of each source; see `WordInputs`. `None`: no words.

        Returns:
            A `Decoded` with tokens that end in `eos_id`, unless they reached the maximum length,
            and are then padded. M is 1 without a beam.

        Raises:
            ValueError: If a source is longer than `max_length`, or its ids are invalid: see
                `source` in the metadata of the file.
        """
        check_source_ids(sources, self.tokenizers.source)
        self._check_lengths(sources)
        shape, pad_id = (len(sources), self._n_best), self.tokenizers.target.pad_id
        if not sources:
            tokens = np.full([*shape, self.max_length], pad_id, np.int32)
            gains = np.zeros(tokens.shape, np.float32) if self.scores_tokens else None
            return Decoded(tokens, np.zeros(shape, np.float32), np.zeros(shape, bool), gains)
        inputs = {"source": padded(sources, self.tokenizers.source.pad_id).astype(np.int32)}
        if isinstance(self.search, Beam):
            inputs |= beam_inputs(self.search, sources, self.has_source, self.max_length)
        elif isinstance(self.search, Sample):
            inputs |= values_of(self.search, range(len(sources)) if numbers is None else numbers)
        inputs |= self.without_words(len(sources)) if words is None else words
        outputs = self._model.run(**inputs)
        tokens = outputs["tokens"].reshape(*shape, -1)
        scores, complete = (outputs[name].reshape(shape) for name in ("score", COMPLETE))
        gains = outputs[TOKEN_SCORES].reshape(tokens.shape) if self.scores_tokens else None
        if not self.aligns:
            return Decoded(tokens, scores, complete, gains)
        weights = outputs[ALIGNMENT].reshape(*tokens.shape, -1)  # [B, M, L, S]
        return Decoded(tokens, scores, complete, gains, list(weights[:, 0]))

    def _check_lengths(self, sources):
        """Refuses a source that is too long; it is not truncated: it would lose its `eos_id`."""
        for number, source in enumerate(sources):
            if len(source) > self.max_length:
                raise ValueError(
                    f"`sources[{number}]` has {len(source)} tokens including eos_id, but "
                    f"{self.path} takes at most {self.max_length}."
                )


def _kind(search):
    """Returns what a file with a search was exported for, as errors call it."""
    if isinstance(search, Beam):
        return f"a beam of size {search.size}"
    return "sampling" if isinstance(search, Sample) else "greedy search"
