"""Contents of an .onnx file whose model generates text, from token ids to token ids."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import Beam, Greedy, Sample
from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.decoding.search import check_search
from keras_transformer.decoding.stored import EXPORTED, as_dict
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.contents import about_generation, default_languages
from keras_transformer.export.metadata import SEARCH
from keras_transformer.export.onnx.contents import OF_LANGUAGE_MODELS, GraphContents
from keras_transformer.export.onnx.format import FORMAT
from keras_transformer.export.onnx.kernels import KERNELS
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.runtime import OnnxTranslator
from keras_transformer.export.onnx.sampling import specs_of
from keras_transformer.export.parity import copy_pipeline
from keras_transformer.export.rows_alone import equally_long, require_as_alone
from keras_transformer.export.shortlists import shortlist_metrics
from keras_transformer.export.worded import WORDS
from keras_transformer.export.words import WordInputs
from keras_transformer.export.words_check import WordsCheck
from keras_transformer.tasks.generator import SOURCE
from keras_transformer.tasks.results import TOKEN_SCORES

FEW = 8  # texts of a batch that are also decoded on their own
SETTINGS = (
    tf.TensorSpec([None], tf.int32, name="max_length"),
    tf.TensorSpec([1], tf.float32, name="length_penalty"),
)


class OnnxGeneration(GraphContents):
    """The search of a model that generates text.

    Args:
        pipeline: A `Generator` in float32.
        samples, limits, progress: See `Contents`.
        options: The `OnnxOptions`.
        left_out: See `export_onnx`.

    Raises:
        TypeError: If the search is not a `Greedy`, a `Beam` or a `Sample`.
        ValueError: If an .onnx file does not support it.
    """

    def __init__(self, pipeline, samples, limits, progress, options, left_out):
        super().__init__(pipeline, samples, limits, progress)
        self._options = options
        if not pipeline.has_source:
            self.quantized = OF_LANGUAGE_MODELS
        self._search = search = pipeline.search if options.search is None else options.search
        check_search(search, Greedy, Beam, Sample)
        self._n_best = options.n_best or 1
        check_alignment(options.alignment, pipeline.model.config)
        if isinstance(search, Beam):
            FORMAT.beams.check(search)
            pipeline.check(search, self._n_best)
        self._words = None
        if options.takes_words:
            self._words = WordInputs(pipeline, search.takes_terms)
        self._agreement = Agreement(pipeline, samples, limits, progress, left_out)

    def function(self) -> Callable[..., dict]:  # noqa: D102
        pipeline = copy_pipeline(self.pipeline, KERNELS)
        _, of_ids = pipeline.signatures(functools.partial(self._find, pipeline))
        return of_ids.lenient if self._words is None else self._words.taken_by(of_ids.lenient)

    def _find(self, pipeline, source, **settings):
        """Returns the `Found` of the search, without the axis M unless it is a beam."""
        words, search = self._words, self._search
        given = {} if words is None else {name: settings.pop(name) for name in words.names}
        if isinstance(search, Beam):  # see `beam_inputs`
            settings = {"extra_length": None, "max_length_ratio": None, **settings}
        search = dataclasses.replace(search, **settings)
        asked = {"n_best": self._n_best, "alignment": self._options.alignment}

        def find(constraints):
            options = pipeline.options(
                constraints=constraints, token_scores=self._options.token_scores, **asked
            )
            return search(pipeline.searched, source, options)

        found = find(pipeline.built_in) if words is None else words.searched(find, given)
        if isinstance(search, Beam):
            return found
        return found._make(None if field is None else tf.squeeze(field, 1) for field in found)

    def specs(self) -> dict[str, tf.TensorSpec]:  # noqa: D102
        settings = ()
        if isinstance(self._search, Beam):
            settings = SETTINGS
        elif isinstance(self._search, Sample):
            settings = specs_of(self._search)
        words = () if self._words is None else self._words.specs()
        return {spec.name: spec for spec in (SOURCE, *words, *settings)}

    def about(self) -> dict[str, Any]:  # noqa: D102
        return {
            **about_generation(self.pipeline),
            **default_languages(self.pipeline, self._options),
            **({} if self._words is None else {WORDS: self._words.metadata()}),
            **({TOKEN_SCORES: True} if self._options.token_scores else {}),
            SEARCH: as_dict(self._search, EXPORTED),
            "n_best": self._n_best,
        }

    def opened(self, model) -> Any:  # noqa: D102
        return OnnxTranslator(model)

    def check(self, draft, path) -> dict[str, Any]:
        """Compares the outputs with the model in memory, and those of a batch with single ones.

        A file that takes words is also compared with words. Only in float32 are rows independent of
        each other.
        """
        self.progress(f"{self.pipeline.participle} {len(self.samples)} texts with the file")
        search = self._search
        if isinstance(search, Sample) and not self.limits.is_exact:
            search = dataclasses.replace(search, temperature=0.0)  # chance is no loss of quality
        expected = self._agreement.expected(search, self._n_best)
        loaded = self.opened(OnnxModel(draft)).with_search(search)
        exported = self._agreement.exported(loaded, f"{self.pipeline.participle} with the file")
        report = self._agreement.judge(search, expected, exported, path)
        if self._words is not None:
            words = WordsCheck(self._agreement, search, expected)
            words.require_ids(loaded.with_search(words.search), path)
        if not self.limits.is_exact:  # in int8, activations have one scale for a whole batch
            return report
        rows = [*map(tuple, self._agreement.read_sources())]
        rows = rows if self.pipeline.has_source else equally_long(rows)
        pad_id = loaded.tokenizers.target.pad_id

        def decode(rows):
            return loaded.decode(rows, numbers=[0] * len(rows))  # samples with the same seed

        require_as_alone(decode, lambda row: decode([row]), rows[:FEW], pad_id, path)
        return report

    def results(self) -> dict[str, Any]:  # noqa: D102
        return shortlist_metrics(self.pipeline, self.samples, self._search)
