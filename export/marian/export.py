"""Export to a folder for Marian, and in int8 for the browsers' engine."""

import dataclasses
import json
import os
from collections.abc import Callable

import numpy as np

from keras_transformer.export.agreement import Agreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.limits import MAX_LOSS, Limits
from keras_transformer.export.marian.arrays import (
    check_run,
    cut_shortlist,
    make_arrays,
    never_emitted,
    quantize,
)
from keras_transformer.export.marian.calibration import find_multipliers
from keras_transformer.export.marian.settings import minimum_version
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_folder, silent
from keras_transformer.export.place_checks import check_place_of_folder, check_space
from keras_transformer.export.reference import Reference
from keras_transformer.export.shortlists import shortlist_metrics
from keras_transformer.models.transformer import Transformer
from keras_transformer.pretrained.files.marian.arrays import Quantized
from keras_transformer.pretrained.files.marian.binary import write_bin
from keras_transformer.pretrained.files.marian.model_file import read
from keras_transformer.pretrained.files.marian.npz import write_npz
from keras_transformer.pretrained.files.marian.settings import as_yaml
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.pipeline import Pipeline
from keras_transformer.text.shortlist import Shortlist
from keras_transformer.text.tokenizers.sentencepiece import SpecialIds

MODEL, BINARY, INTGEMM = "model.npz", "model.bin", "model.intgemm.alphas.bin"
SHARED, SEPARATE = ("vocab.spm",), ("source.spm", "target.spm")
DECODER, INTGEMM_DECODER, METADATA = "decoder.yml", "decoder.intgemm.yml", "metadata.json"
SHORTLIST = "lex.s2t.bin"
FILES = {
    MODEL, BINARY, INTGEMM, *SHARED, *SEPARATE, DECODER, INTGEMM_DECODER, METADATA, SHORTLIST,
}  # fmt: skip
PRECISION = "int8shiftAlphaAll"


def check_place(directory):
    """Returns the path of the folder to write: see `check_place_of_folder`."""
    return check_place_of_folder(directory, FILES)


def export_marian(
    pipeline: Pipeline,
    directory: str | os.PathLike,
    samples: list,
    quantize: str = "none",
    *,
    calibration: list[str] | None = None,
    min_agreement: float | None = None,
    references: list[str] | None = None,
    max_loss: float = MAX_LOSS,
    max_score_loss: float | None = None,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
) -> dict:
    """Writes a folder that Marian loads: `marian-decoder -c decoder.yml`.

    It holds `model.npz`, `model.bin`, the vocabularies and `decoder.yml`; in int8 also
    `model.intgemm.alphas.bin` and `decoder.intgemm.yml` for the browsers' engine. `pad_id` and
    `bos_id`, which Marian does not know, have no probability there, and it never emits the unknown
    piece.

    The folder appears at `directory` when its files have been read back as the same weights, and
    the model made of them translates `samples` greedily as the model in memory does where that
    emits none of those tokens. In int8 the weights are judged so, in float32; what the engine's
    products of int8 change beside that is not measured here.

    Marian bounds outputs in its own way: a `max_length` of its search is not in the
    folder.

    Args:
        pipeline: A `Translator` or a `Summarizer`; its shortlist goes with it for the engines'
            searches and changes nothing of the check.
        directory: The folder. An older export is replaced.
        samples: List of real sentences to check the export with.
        quantize: `"none"` or `"int8"`.
        calibration: List of sentences that show the sizes of the activations, for int8. `None`:
            `samples`.
        min_agreement, references, max_loss, max_score_loss, origin, progress, left_out: See
            `export_ctranslate2`; the origin stands in `metadata.json`.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, the metrics of `Agreement` and those of
        `shortlist_metrics`. With the activation gelu also `minimum_marian_version`, which is in
        `metadata.json` as well: older engines compute another function under that name.

    Raises:
        ExportError: If Marian cannot express the model, the translations differ, or something else
            is at `directory`.
        OSError: If it cannot be written.
        ValueError: If an argument is wrong.
    """
    FORMATS["marian"].check(pipeline)
    samples = pipeline.check_samples(samples)
    directory = check_place(directory)
    limits = Limits(quantize, min_agreement, references, max_loss, max_score_loss)
    limits.check(FORMATS["marian"].quantizations)
    if calibration is not None and quantize == "none":
        raise ValueError("`calibration` has no effect with quantize='none'.")
    calibration = samples if calibration is None else list(calibration)
    if not any(map(str.strip, calibration)):
        raise ValueError("`calibration` must hold at least one sentence that is not empty.")
    check_run(pipeline.model.config, pipeline.tokenizers, quantize, origin)
    check_space(directory, pipeline)
    restricted = in_float32(pipeline)
    pipeline = _quiet(restricted.with_shortlist(None))
    agreement = Agreement(pipeline, samples, limits, progress or silent, left_out)
    shortlist = restricted.shortlist
    if shortlist is not None:
        shortlist = cut_shortlist(shortlist, pipeline)
    draft = _Draft(agreement, directory, shortlist, origin, progress or silent)
    metrics = shortlist_metrics(restricted, samples)
    report = place_folder(directory, lambda folder: draft.write(folder, calibration))
    size = sum(file.stat().st_size for file in directory.iterdir())
    return {"path": str(directory), "bytes": size, "quantize": quantize, **report, **metrics}


def _quiet(pipeline):
    """The same with a model that emits what Marian may emit, and computes in float32."""
    model = pipeline.model
    unknown = SpecialIds.of(pipeline.target_tokenizer.model).unk_id
    config = dataclasses.replace(
        model.config, banned_ids=never_emitted(model.config), silent_ids=(unknown,)
    )
    quiet = Transformer(config, dtype="float32")
    quiet.set_weights(model.get_weights())
    return pipeline.with_model(quiet)


@dataclasses.dataclass(frozen=True)
class _Draft:
    """The folder while it is written and checked."""

    agreement: Agreement
    name: str
    shortlist: Shortlist | None
    origin: dict | None
    progress: Callable[[str], object]

    def write(self, folder, calibration):
        """Fills the folder; returns the metrics of its check."""
        pipeline, in_int8 = self.agreement.pipeline, self.agreement.limits.quantize == "int8"
        self.progress("writing the weights")
        arrays = make_arrays(pipeline.model, pipeline.tokenizers)
        write_npz(folder / MODEL, arrays)
        write_bin(folder / BINARY, arrays)
        vocabularies = _write_vocabularies(folder, pipeline.tokenizers)
        options = {}
        if self.shortlist is not None:
            self.shortlist.write(folder / SHORTLIST)
            options["shortlist"] = [SHORTLIST, False]
        _write_decoder(folder / DECODER, MODEL, vocabularies, **options)
        written = {MODEL: arrays, BINARY: arrays}
        if in_int8:
            self.progress(f"calibrating with {len(calibration)} sentences")
            written[INTGEMM] = quantize(arrays, find_multipliers(pipeline, calibration))
            write_bin(folder / INTGEMM, written[INTGEMM])
            options["gemm-precision"] = PRECISION
            _write_decoder(folder / INTGEMM_DECODER, INTGEMM, vocabularies, **options)
        for name, ours in written.items():
            _require_same(folder / name, ours)
        report = self._judge(folder / (INTGEMM if in_int8 else MODEL), vocabularies)
        metadata = {"origin": self.origin} if self.origin else {}
        metadata["agreement"] = without_sentences(report)
        minimum = minimum_version(pipeline.model.config)
        if minimum is not None:
            metadata["minimum_marian_version"] = report["minimum_marian_version"] = minimum
        (folder / METADATA).write_text(json.dumps(metadata, indent=2), "utf-8")
        return report

    def _judge(self, path, vocabularies):
        samples, pipeline = self.agreement.samples, self.agreement.pipeline
        self.progress(f"translating {len(samples)} sentences with what was written")
        files = [path.parent / name for name in vocabularies]
        config = pipeline.model.config
        read_back = read_checkpoint(path, vocabularies=files, max_length=config.max_length)
        loaded = type(pipeline)(
            read_back.model, read_back.tokenizers, pipeline.max_length, search=pipeline.search
        )
        ours, theirs = (
            Reference(side, progress=self.progress).outputs(samples) for side in (pipeline, loaded)
        )
        return self.agreement.judge(pipeline.greedy, ours, theirs, self.name)


def _write_vocabularies(folder, tokenizers):
    """Writes the SentencePiece files; returns their names."""
    names = SHARED if tokenizers.shared else SEPARATE
    for name, side in zip(names, tokenizers, strict=False):
        (folder / name).write_bytes(side.model)
    return names


def _write_decoder(path, model, vocabularies, **options):
    settings = {
        "relative-paths": True,
        "models": [model],
        "vocabs": [vocabularies[0], vocabularies[-1]],
        "beam-size": 1,
        "normalize": 0,
        "word-penalty": 0,
        "mini-batch": 32,
        "maxi-batch": 100,
        "maxi-batch-sort": "src",
        **options,
    }
    path.write_text(as_yaml(settings), "utf-8")


def _require_same(path, arrays):
    """Reads a file back.

    Raises:
        ExportError: If it holds something else than was written.
    """
    again = read(path)
    same = again.keys() == arrays.keys() and all(
        _is_same(again[name], array) for name, array in arrays.items()
    )
    if not same:
        raise ExportError(f"{path.name} was read back as something else. The export was not kept.")


def _is_same(one, other):
    if isinstance(other, Quantized):
        return isinstance(one, Quantized) and all(map(np.array_equal, one, other))
    return one.dtype == other.dtype and np.array_equal(one, other)
