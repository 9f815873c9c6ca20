"""Export to a CTranslate2 model, from tokens to tokens, which CTranslate2 searches."""

import dataclasses
import json
import math
import os
from collections.abc import Callable

from keras_transformer.decoding import Beam
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.ctranslate2.runtime import (
    CONFIG,
    MODEL,
    CTranslate2Translator,
    load_ctranslate2,
)
from keras_transformer.export.ctranslate2.spec import check_expressible, make_spec
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.limits import MAX_LOSS, Limits
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_folder, silent
from keras_transformer.export.place_checks import check_place_of_folder, check_space
from keras_transformer.tasks.pipeline import Pipeline
from keras_transformer.text.tokenizers.pair import FILES as TOKENIZERS

VOCABULARIES = ("shared_vocabulary.json", "source_vocabulary.json", "target_vocabulary.json")
FILES = {MODEL, CONFIG, *TOKENIZERS, *VOCABULARIES}
# Nats per token that a quantised model may lose: its weights, computed with in float32, and the
# processor's kernels. Seen of int8, for the small model of the tests: 0.001 and, with VNNI, 0.0015,
# with AVX2 alone 0.1 for 37 sentences and 0.3 for 8, half of which mean nothing to it; with weights
# of the table off by a quarter 0.11 on any processor, with a matrix upside down 4. So the weights
# are limited closely, and the kernels only where they give nonsense.
MAX_SCORE_LOSS = {"none": 0.0, "float16": 0.01, "int8": 0.03}
MAX_KERNEL_LOSS = {"none": 0.0, "float16": 0.01, "int8": 1.0}
BEAM = Beam(4, normalization="average", extra_length=None)
PROGRESS = "translating with CTranslate2"
METRICS = ("token_agreement", "score_loss", "score_error", "bleu", "chrf")


def check_place(directory):
    """Returns the path of the folder to write: see `check_place_of_folder`."""
    return check_place_of_folder(directory, FILES)


def export_ctranslate2(
    pipeline: Pipeline,
    directory: str | os.PathLike,
    samples: list,
    quantize: str = "none",
    *,
    min_agreement: float | None = None,
    references: list[str] | None = None,
    max_loss: float = MAX_LOSS,
    max_score_loss: float | None = None,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
) -> dict:
    """Writes a folder that `ctranslate2.Translator` loads, with the vocabulary beside the model.

    Its tokens are SentencePiece's pieces; it adds the end of a source by itself. With the right
    options of `translate_batch` it finds what the searches of this package find:

    - always `min_decoding_length=0` and, up to 256, `max_decoding_length=max_length`;
    - `greedy_decode`: `beam_size=1`; with `length_penalty=0` also the scores. Where the search of
      the translator bounds outputs, `greedy_max_length` in `config.json` is less than `max_length`;
    - `beam_decode(normalization="average")`: `length_penalty=1, return_end_token=True`;
    - `beam_decode(normalization="none")`: `length_penalty=1e-9`. With 0 CTranslate2 goes on until
      the best of all hypotheses has ended, where `beam_decode` stops after `beam_size` of them.

    Nothing there equals `normalization="gnmt"`, the default of `beam_decode`: CTranslate2 divides
    by `n ** length_penalty`. Two differences remain with a beam: CTranslate2 may emit `pad_id` and
    `bos_id`, and it ranks hypotheses that the limit cut among those that ended, not after them.

    The folder appears at `directory` when it has translated `samples` as the model in memory
    does, greedily and with a beam of 4 and averages where the limit cut nothing; with the beam 1 %
    of the translations may be others. If it does not, or on any other error, `directory` is as it
    was before. How that is judged: see `Agreement` in `agreement.py`. The kernels for int8 of a
    processor without VNNI themselves lose much: what limits a quantised model closely is
    what it loses when CTranslate2 computes with its weights in float32, on any processor.

    Args:
        pipeline: A `Translator` or a `Summarizer`.
        directory: The folder. An older export is replaced.
        samples: List of real sentences to check the export with.
        quantize: `"none"`: float32. `"float16"`: weights of half the size. `"int8"`: weights of a
            quarter of the size, products in integers.
        min_agreement, references, max_loss: See `Limits`; the share is that of tokens in greedy
            search on this processor, and the loss that of the weights.
        max_score_loss: Largest `score_loss` and `score_error` of a quantised model's weights, in
            nats per token: see `Agreement`. With the processor's kernels they may be 1, or this
            if it is more. `None`: see `MAX_SCORE_LOSS`.
        origin: Dictionary of what is known of the checkpoint that the weights come from, for the
            `config.json`: see `Run.read_origin`.
        progress, left_out: See `export_saved_model`.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, the metrics of `Agreement`, those of a quantised
        model's weights under `in_float32`, and of the search with a beam `beam_sentences` and
        `beam_agreement`, which is `None` if there are no sentences. All but path and size are also
        in the folder, in its `config.json` under `agreement`.

    Raises:
        ExportError: If CTranslate2 cannot express the model, the translations differ, or something
            else is at `directory`.
        OSError: If it cannot be written.
        ValueError: If ctranslate2 is missing, or an argument is wrong.
    """
    load_ctranslate2()
    FORMATS["ctranslate2"].check(pipeline)
    samples = pipeline.check_samples(samples)
    directory = check_place(directory)
    of_weights = MAX_SCORE_LOSS.get(quantize) if max_score_loss is None else max_score_loss
    limits = Limits(quantize, min_agreement, references, max_loss, of_weights)
    limits.check(FORMATS["ctranslate2"].quantizations)
    if pipeline.shortlist is not None:
        raise ExportError(
            "A folder for CTranslate2 cannot hold a shortlist. Export the pipeline without one: "
            "`pipeline.with_shortlist(None)`."
        )
    check_expressible(pipeline.model.config, origin)
    check_space(directory, pipeline, quantize)
    progress = progress or silent
    pipeline = in_float32(pipeline)

    agreement = Agreement(pipeline, samples, limits, progress, left_out)
    of_kernels = dataclasses.replace(
        limits,
        max_loss=math.inf,
        max_score_loss=max(MAX_KERNEL_LOSS[quantize], max_score_loss or 0),
    )

    def write(draft):
        progress("writing the weights")
        _write(draft, pipeline, quantize)
        progress(f"translating {len(samples)} sentences greedily and with a beam")
        report = _judge(draft, agreement, of_kernels, directory)
        _keep_metadata(draft / CONFIG, report, origin)
        return report

    report = place_folder(directory, write)
    return {
        "path": str(directory),
        "bytes": sum(file.stat().st_size for file in directory.iterdir()),
        "quantize": quantize,
        **report,
    }


def _write(draft, pipeline, quantize):
    tokenizers = pipeline.tokenizers
    pieces = [side.pieces(range(side.vocab_size)) for side in tokenizers]
    longest = pipeline.max_length
    lengths = longest, pipeline.greedy.limit(None, longest)
    spec = make_spec(pipeline.model, *pieces, tokenizers.source.unk_id, *lengths)
    spec.optimize(None if quantize == "none" else quantize)
    spec.save(str(draft))
    for name, model in tokenizers.files().items():
        (draft / name).write_bytes(model)


def _keep_metadata(config, report, origin):
    """Adds the metrics, but no sentences, and the origin to the metadata of a model."""
    metadata = json.loads(config.read_text("utf-8"))
    if origin:
        metadata["origin"] = origin
    metadata["agreement"] = without_sentences(report)
    config.write_text(json.dumps(metadata, indent=2), "utf-8")


def _judge(draft, agreement, of_kernels, name):
    """The metrics of both searches of a draft; with quantised weights also those in float32."""
    search, quantize = agreement.pipeline.greedy, agreement.limits.quantize
    expected = agreement.expected(search)

    def judge(agreement, compute_type="default"):
        loaded = CTranslate2Translator(draft, compute_type=compute_type)
        return agreement.judge(search, expected, agreement.exported(loaded, PROGRESS), name)

    report = {}
    if quantize != "none":
        limits = dataclasses.replace(agreement.limits, min_agreement=None)
        weights = judge(dataclasses.replace(agreement, limits=limits), "float32")
        report["in_float32"] = {name: weights[name] for name in METRICS if name in weights}
        agreement = dataclasses.replace(agreement, limits=of_kernels)
    report = {**judge(agreement), **report}
    beam = _judge_beam(draft, agreement, f"{name}, searched with a beam")
    return {**report, "beam_sentences": beam["sentences"], "beam_agreement": beam["agreement"]}


def _judge_beam(draft, agreement, name):
    """The metrics of the sentences to whose end CTranslate2 came."""
    loaded = CTranslate2Translator(draft, BEAM)
    columns = agreement.samples, agreement.expected(BEAM), agreement.exported(loaded, PROGRESS)
    rows = [row for row in zip(*columns, strict=True) if loaded.has_ended(row[2][0].tokens)]
    if not rows:
        return {"sentences": 0, "agreement": None}
    sentences, expected, exported = map(list, zip(*rows, strict=True))
    limits = dataclasses.replace(agreement.limits, references=None, min_agreement=None)
    agreement = dataclasses.replace(agreement, samples=sentences, limits=limits)
    return agreement.judge(BEAM, expected, exported, name)
