"""Contents of a folder for CTranslate2 whose model generates text."""

import dataclasses
from typing import Any

import numpy as np

from keras_transformer.decoding import Beam
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.ctranslate2.format import CTranslate2Options
from keras_transformer.export.ctranslate2.metadata import FORCED, renormalizing, rules_of
from keras_transformer.export.ctranslate2.opened import open_ctranslate2
from keras_transformer.export.ctranslate2.spec import make_spec
from keras_transformer.export.extent import limited
from keras_transformer.export.limits import ANY_LOSS
from keras_transformer.export.searches import plain_greedy
from keras_transformer.free_memory import return_free_memory

# Maximum loss in nats per token with the processor's kernels. Measured for int8 with the small
# model of the tests: 0.0015 with VNNI, and with AVX2 alone 0.1 for 37 sentences and 0.3 for 8
# sentences, half of them unlike its training data. With errors of a quarter in the embedding table:
# 0.11 on any processor; with a matrix upside down: 4. The limit for the weights, `score_losses`, is
# therefore tight, and this one only catches nonsense.
MAX_KERNEL_LOSS = {"none": 0.0, "float16": 0.01, "int8": 1.0}
BEAM = Beam(4, normalization="average", extra_length=None)
BEAM_BY_SUM = Beam(4, length_penalty=0.0, extra_length=None)
PROGRESS = "{} with CTranslate2"
METRICS = ("token_agreement", "score_loss", "score_error", "bleu", "chrf")


class CTranslate2Generation:
    """A model that generates text, with the check of its searches.

    Args:
        pipeline: A `Generator` in float32.
        samples: List of sentences. Empty prompts are left out if CTranslate2 does not continue
            them: see `CTranslate2TextGenerator`.
        limits: The `Limits`.
        progress, left_out: See `export_ctranslate2`.

    Raises:
        ValueError: If no sample is left.
    """

    def __init__(self, pipeline, samples, limits, progress, left_out):
        self._pipeline, self._progress = pipeline, progress
        if pipeline.model.config.decoder.hides_start:
            every = len(samples)
            samples, limits = _continued(pipeline, samples, limits)
            left_out += every - len(samples)
        of_weights = limits.score_loss(CTranslate2Options.score_losses)
        of_kernels = max(MAX_KERNEL_LOSS[limits.quantize], limits.max_score_loss or 0)
        limits = dataclasses.replace(limits, max_score_loss=of_weights)
        self._of_kernels = dataclasses.replace(limits, max_loss=ANY_LOSS, max_score_loss=of_kernels)
        self._agreement = Agreement(pipeline, samples, limits, progress, left_out)

    def spec(self) -> Any:
        """Returns CTranslate2's specification of the model."""
        pipeline = self._pipeline
        pieces = [side.pieces(range(side.vocab_size)) for side in pipeline.tokenizers]
        longest = pipeline.max_length
        lengths = longest, plain_greedy(pipeline).limit(None, longest)
        return make_spec(pipeline.model, *pieces, pipeline.tokenizers.source.unk_id, *lengths)

    def write_more(self, draft) -> None:
        """Writes nothing: CTranslate2 computes the whole model."""

    def check(self, draft, name) -> dict[str, Any]:
        """Returns the results of both searches; for a quantised model also those in float32.

        Args:
            draft: The folder.
            name: Name of the export, for errors.

        Raises:
            ExportError: If the outputs differ.
        """
        count = len(self._agreement.samples)
        self._progress(f"{self._pipeline.participle} {count} texts greedily and with a beam")
        return _judge(draft, self._agreement, self._of_kernels, name)


def _continued(pipeline, samples, limits):
    """Returns the samples that are not empty prompts, and the `Limits` with their references."""
    lengths = pipeline.source_tokenizer.encode(samples).row_lengths().numpy()
    kept = np.flatnonzero(lengths > 1)  # an empty prompt is its end alone
    if not len(kept):
        raise ValueError(
            "`samples` must contain a prompt that is not empty: no token begins the texts of this "
            f"model, so that CTranslate2 cannot continue an empty one. Received: {len(samples)} "
            "empty prompts."
        )
    if limits.references is not None:
        limits.check_references(samples)
        references = [limits.references[number] for number in kept]
        limits = dataclasses.replace(limits, references=references)
    return [samples[number] for number in kept], limits


def _judge(draft, agreement, of_kernels, name):
    """Returns the results of both searches; for a quantised model also those in float32."""
    pipeline, quantize = agreement.pipeline, agreement.limits.quantize
    search = limited(pipeline, plain_greedy(pipeline))
    expected = agreement.expected(search)
    return_free_memory()  # of the search in memory, before CTranslate2 loads the weights

    def judge(agreement, compute_type="default"):
        loaded = open_ctranslate2(draft, search, compute_type=compute_type)
        return agreement.judge(
            search, expected, agreement.exported(loaded, _stage(agreement)), name
        )

    report = {}
    if quantize != "none":
        limits = dataclasses.replace(agreement.limits, min_agreement=None)
        weights = judge(dataclasses.replace(agreement, limits=limits), "float32")
        report["in_float32"] = {name: weights[name] for name in METRICS if name in weights}
        agreement = dataclasses.replace(agreement, limits=of_kernels)
    report = {**judge(agreement), **report}
    beam = _judge_beam(draft, agreement, f"{name}, searched with a beam")
    return {**report, "beam_sentences": beam["sentences"], "beam_agreement": beam["agreement"]}


def _stage(agreement):
    """Returns the name of the stage in which CTranslate2 generates, for `progress`."""
    return PROGRESS.format(agreement.pipeline.participle)


def _judge_beam(draft, agreement, name):
    """Returns results with a beam, for the sentences that CTranslate2 should translate alike.

    These are all sentences whose translations ended before the limit, with two exceptions: an
    output that ends at its first free position, because CTranslate2 may drop it; and an output in
    which CTranslate2 repeats the token that begins outputs. The model in memory never does that. If
    the end token is forced at the limit, the model in memory ranks such outputs among those that
    ended earlier.
    """
    config = agreement.pipeline.model.config
    if renormalizing(rules_of(config)) is not None:
        return {"sentences": 0, "agreement": None}
    beam = BEAM_BY_SUM if config.decoder.hides_start else BEAM
    # No longer than in greedy search: a model that does not end would fill all its positions.
    greedy = limited(agreement.pipeline, plain_greedy(agreement.pipeline))
    beam = dataclasses.replace(beam, max_length=greedy.max_length)
    outputs = agreement.expected(beam, beam.size)
    return_free_memory()  # of the search in memory, before CTranslate2 loads the weights
    loaded = open_ctranslate2(draft, beam)
    ends_by_force = loaded.metadata[FORCED] is not None
    columns = (
        *(agreement.samples, agreement.read_sources(), outputs),
        agreement.exported(loaded, _stage(agreement)),
    )
    rows = [
        (sentence, expected[:1], exported)
        for sentence, source, expected, exported in zip(*columns, strict=True)
        if not loaded.is_incomplete(exported[0].tokens, source)
        if not (ends_by_force and loaded.is_incomplete(expected[0].tokens, source))
        if all(len(output.tokens) != loaded.dropped_length(source) for output in expected)
        if config.tokens.bos_id == config.tokens.eos_id
        or config.tokens.bos_id not in exported[0].tokens
    ]
    if not rows:
        return {"sentences": 0, "agreement": None}
    sentences, expected, exported = map(list, zip(*rows, strict=True))
    limits = dataclasses.replace(agreement.limits, references=None, min_agreement=None)
    agreement = dataclasses.replace(agreement, samples=sentences, limits=limits)
    return agreement.judge(beam, expected, exported, name)
