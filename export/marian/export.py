"""Export to a folder for Marian, and in int8 for the engine that browsers use."""

import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_transformer.export.agreement import Agreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.marian.arrays import (
    check_run,
    cut_shortlist,
    make_arrays,
    never_emitted,
    quantize,
)
from keras_transformer.export.marian.calibration import find_multipliers
from keras_transformer.export.marian.format import FORMAT, MarianOptions
from keras_transformer.export.marian.settings import minimum_version
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_folder, silent
from keras_transformer.export.place_checks import check_place_of_folder, check_space
from keras_transformer.export.reference import Reference
from keras_transformer.export.searches import plain_greedy
from keras_transformer.export.shortlists import shortlist_metrics
from keras_transformer.files import json_text
from keras_transformer.models.transformer import Transformer
from keras_transformer.pretrained.files.marian.arrays import Quantized
from keras_transformer.pretrained.files.marian.binary import write_bin
from keras_transformer.pretrained.files.marian.npz import write_npz
from keras_transformer.pretrained.files.marian.settings import (
    DEFAULT_LENGTH_FACTOR,
    LENGTH_FACTOR,
)
from keras_transformer.pretrained.files.marian.weights import read
from keras_transformer.pretrained.files.marian.yaml_files import as_yaml
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.pipeline import Pipeline
from keras_transformer.text.sentencepiece_model import SpecialIds
from keras_transformer.text.shortlist import Shortlist

MODEL, BINARY, INTGEMM = "model.npz", "model.bin", "model.intgemm.alphas.bin"
SHARED, SEPARATE = ("vocab.spm",), ("source.spm", "target.spm")
DECODER, INTGEMM_DECODER, METADATA = "decoder.yml", "decoder.intgemm.yml", "metadata.json"
SHORTLIST = "lex.s2t.bin"
FILES = {
    MODEL, BINARY, INTGEMM, *SHARED, *SEPARATE, DECODER, INTGEMM_DECODER, METADATA, SHORTLIST,
}  # fmt: skip
PRECISION = "int8shiftAlphaAll"


def check_place(directory) -> pathlib.Path:
    """Returns the path of the folder to write: see `check_place_of_folder`."""
    return check_place_of_folder(directory, FILES)


def export_marian(
    pipeline: Pipeline,
    directory: str | os.PathLike,
    samples: list,
    options: MarianOptions | None = None,
    *,
    calibration: list[str] | None = None,
    references: list[str] | None = None,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
) -> dict[str, Any]:
    """Writes a folder that Marian loads with `marian-decoder -c decoder.yml`.

    It contains `model.npz`, `model.bin`, the vocabularies and `decoder.yml`; in int8 also
    `model.intgemm.alphas.bin` and `decoder.intgemm.yml` for the fork of Marian that browsers use.
    In these files `pad_id` and `bos_id`, which Marian does not have, have a probability of zero,
    and Marian never emits the unknown token.

    The folder appears at `directory` only after its files have been read back with equal weights,
    and a model with these weights has translated `samples` with greedy search like the model in
    memory. For this comparison, the model in memory does not emit these tokens either. In int8 the
    quantised weights are compared, computed in float32; the effect of the engine's products of
    integers is not measured.

    The decoders' settings contain the model's `max_length_ratio`, or Marian's own of 3 if it has
    none. Nothing of the pipeline's search is exported.

    Args:
        pipeline: A `Translator` or a `Summarizer`. Its shortlist is exported for the engines, but
            is not used in the check.
        directory: The folder. An older export is replaced.
        samples: List of real sentences to check the export with.
        options: The `MarianOptions`. `None`: the defaults.
        calibration: List of sentences from which the ranges of the activations are found, for int8.
            `None`: `samples`.
        references, progress, left_out: See `export_ctranslate2`.
        origin: Provenance of the original checkpoint, a dictionary for the `metadata.json`: see
            `Run.read_origin`.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, the results of `Agreement` and those of
        `shortlist_metrics`. With the activation gelu also `minimum_marian_version`, because older
        versions compute another function under that name; it is also in `metadata.json`.

    Raises:
        ExportError: If Marian cannot express the model, the translations differ, or something else
            is at `directory`.
        OSError: If the folder cannot be written.
        ValueError: If an argument is wrong.
    """
    options = FORMAT.check(pipeline, options)
    samples = pipeline.check_samples(samples)
    directory = check_place(directory)
    limits = Limits.of(options, references)
    if calibration is not None and options.quantize == "none":
        raise ValueError("`calibration` has no effect with quantize='none'.")
    calibration = samples if calibration is None else list(calibration)
    if not any(map(str.strip, calibration)):
        raise ValueError("`calibration` must contain at least one sentence that is not empty.")
    check_run(pipeline.model.config, pipeline.tokenizers, options, origin)
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
    return {
        "path": str(directory),
        "bytes": size,
        "quantize": options.quantize,
        **report,
        **metrics,
    }


def _quiet(pipeline):
    """Returns a copy of a pipeline in float32 that emits only what Marian emits.

    These are other tokens and shorter outputs: Marian always limits them by their sources.
    """
    model = pipeline.model
    unknown = SpecialIds.of(pipeline.target_tokenizer.model).unk_id
    config = dataclasses.replace(
        model.config,
        banned_ids=never_emitted(model.config),
        suppressed_ids=(unknown,),
        max_length_ratio=model.config.head.rules.max_length_ratio or DEFAULT_LENGTH_FACTOR,
    )
    quiet = Transformer(config, dtype="float32")
    quiet.set_weights(model.get_weights())
    return pipeline.with_model(quiet)


@dataclasses.dataclass(frozen=True)
class _Draft:
    """Folder that is being written and checked.

    Args:
        agreement: The `Agreement`.
        name: Path of the export, for errors.
        shortlist: The `Shortlist` to write, or `None`.
        origin: Provenance of the original checkpoint, a dictionary, or `None`.
        progress: Function of the name of a stage.
    """

    agreement: Agreement
    name: str
    shortlist: Shortlist | None
    origin: dict | None
    progress: Callable[[str], object]

    def write(self, folder, calibration):
        """Fills the folder; returns the results of the check."""
        pipeline, in_int8 = self.agreement.pipeline, self.agreement.limits.quantize == "int8"
        self.progress("writing the weights")
        arrays = make_arrays(pipeline.model, pipeline.tokenizers)
        write_npz(folder / MODEL, arrays)
        write_bin(folder / BINARY, arrays)
        vocabularies = _write_vocabularies(folder, pipeline.tokenizers)
        options = {LENGTH_FACTOR: pipeline.model.config.head.rules.max_length_ratio}
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
        metadata: dict[str, Any] = {"origin": self.origin} if self.origin else {}
        metadata["agreement"] = without_sentences(report)
        minimum = minimum_version(pipeline.model.config)
        if minimum is not None:
            metadata["minimum_marian_version"] = report["minimum_marian_version"] = minimum
        (folder / METADATA).write_text(json_text(metadata), "utf-8")
        return report

    def _judge(self, path, vocabularies):
        samples, pipeline = self.agreement.samples, self.agreement.pipeline
        participle = pipeline.participle
        self.progress(f"{participle} {len(samples)} texts with the files that were written")
        files = [path.parent / name for name in vocabularies]
        config = pipeline.model.config
        read_back = read_checkpoint(path, vocabularies=files, max_length=config.max_length)
        loaded = type(pipeline)(
            read_back.model, read_back.tokenizers, pipeline.max_length, search=pipeline.search
        )
        search = plain_greedy(pipeline)
        ours, theirs = (
            Reference(side, search, progress=self.progress).outputs(samples)
            for side in (pipeline, loaded)
        )
        return self.agreement.judge(search, ours, theirs, self.name)


def _write_vocabularies(folder, tokenizers):
    """Writes the SentencePiece models; returns the names of the files."""
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
    """Reads a file again and compares it with the arrays that were written.

    Raises:
        ExportError: If they differ.
    """
    again = read(path)
    same = again.keys() == arrays.keys() and all(
        _is_same(again[name], array) for name, array in arrays.items()
    )
    if not same:
        raise ExportError(
            f"{path.name}, read again, differs from what was written. The export was not kept."
        )


def _is_same(one, other):
    if isinstance(other, Quantized):
        return isinstance(one, Quantized) and all(map(np.array_equal, one, other))
    return one.dtype == other.dtype and np.array_equal(one, other)
