"""Formats of an export, with the options, searches and quantisations that each accepts.

The module that writes a format is imported only when it is used, because each depends on other
libraries.
"""

import dataclasses
import importlib
from typing import Any

from keras_transformer.export.errors import ExportError


@dataclasses.dataclass(frozen=True)
class Beams:
    """Beam searches that a format supports.

    Args:
        name: The format as errors call it, such as `"a .tflite file"`.
        values: Dictionary from fields of a `Beam` to their allowed values.
        reason: Reason for the restriction, a clause for the error. `""`: none is given.
    """

    name: str
    values: dict = dataclasses.field(default_factory=dict)
    reason: str = ""

    @property
    def fixed(self) -> tuple[str, ...]:
        """Names of the fields with a single allowed value, for which there are no options."""
        return tuple(name for name, values in self.values.items() if len(values) == 1)

    def check(self, beam, any_normalization=False) -> None:
        """Raises a `ValueError` unless the format supports a beam search.

        Args:
            beam: The `Beam`.
            any_normalization: Whether to accept any normalization, because it divides by 1.
        """
        for field, values in self.values.items():
            if any_normalization and field == "normalization":
                continue
            if getattr(beam, field) not in values:
                choices = " or ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in values)
                reason = f": {self.reason}" if self.reason else ""
                raise ValueError(
                    f"`{field}` of a beam in {self.name} must be {choices}{reason}. "
                    f"Received: search={beam!r}."
                )


@dataclasses.dataclass(frozen=True)
class Format:
    """A format to which pipelines are exported.

    Args:
        name: Name of the format on the command line.
        exporter: Function that writes it, as `"module:function"` within this package.
        place: Function that refuses a path to which it cannot be written, in the same form.
        form: The `Form` that opens it, in the same form.
        options: Names of the exporter's options for every pipeline.
        of_answers: Names of further options for models that answer in one pass.
        of_searches: Names of further options for models that generate text.
        of_sources: Names of further options for models that generate text from a source.
        needs_vocabulary: Whether only models that read texts can be exported.
        needs_source: Whether only those that generate text from a source can be exported.
        quantizations: Allowed values of `quantize`.
        calibrated: The value of `quantize` that needs sentences to calibrate with. `""`: none does.
        beams: The supported `Beams`. `None`: only greedy search is supported.
        opened_with: Options of `predict` that apply when the export is opened.
        refusal: Function that refuses a run before its weights are read, in the same form as
            `exporter`. Its arguments are the configuration, the tokenizers, the quantisation and
            the origin. `""`: there is none.
    """

    name: str
    exporter: str
    place: str
    form: str
    options: tuple = ("origin", "progress")
    of_answers: tuple = ()
    of_searches: tuple = ("left_out",)
    of_sources: tuple = ()
    needs_vocabulary: bool = False
    needs_source: bool = False
    quantizations: tuple = ("none",)
    calibrated: str = ""
    beams: Any = None  # `Beams`
    opened_with: tuple = ()
    refusal: str = ""

    def export(self, pipeline, path, samples, **options) -> dict[str, Any]:
        """Exports a pipeline and returns the exporter's report."""
        return _imported(self.exporter)(pipeline, path, samples, **options)

    def check_place(self, path) -> None:
        """Raises an `ExportError` or an `OSError` unless the export can be written to `path`."""
        _imported(self.place)(path)

    def check(self, pipeline, **options) -> None:
        """Checks that options have an effect on a pipeline.

        Args:
            pipeline: A `Pipeline`.
            **options: Values by name. A false value, such as `None` or 0, counts as not given.

        Raises:
            ExportError: If the format does not support such a pipeline, or the pipeline was opened
                from an export.
            ValueError: If an option has no effect on the pipeline.
        """
        if not hasattr(pipeline, "model") or getattr(pipeline.model, "is_exported", False):
            raise ExportError(
                "A pipeline that was opened from an export cannot be exported. Open the run that "
                "it was exported from."
            )
        taken = self.options_of(pipeline)
        for name, value in options.items():
            if value and name not in taken:
                raise ValueError(
                    f"`{name}` has no effect on a model for {pipeline.task}. "
                    f"Received: {name}={value!r}."
                )

    def options_of(self, pipeline) -> set[str]:
        """Returns the set of names of the options that have an effect on a pipeline.

        Raises:
            ExportError: If the format does not support such a pipeline.
        """
        refused = self.needs_source and not pipeline.has_source
        if refused or self.needs_vocabulary and not pipeline.reads_text:
            raise ExportError(f"There is no export to {self.name} of a model for {pipeline.task}.")
        of_kind = self.of_searches if pipeline.generates else self.of_answers
        return {*self.options, *of_kind, *(self.of_sources if pipeline.has_source else ())}

    def check_run(self, run, quantize="none") -> None:
        """Checks that a `Run` can be exported, as far as possible without loading its weights.

        Raises:
            ExportError: If the format does not support the model; the message says why.
            ValueError: If a file of the run is missing or damaged.
        """
        config = run.read_model_config() if self.refusal else None
        if config is None or config.tokens is not config.input or config.tokens is None:
            return  # it does not read tokens
        if not self.needs_source or None not in (config.encoder, config.decoder):
            _imported(self.refusal)(config, run.load_tokenizers(), quantize, run.read_origin())


QUANTIZED = ("quantize", "min_agreement", "references", "max_loss", "max_score_loss")
FORMATS = {
    format.name: format
    for format in (
        Format(
            "saved-model",
            "saved_model.export:export_saved_model",
            "place_checks:check_place_of_versions",
            "saved_model.form:SavedModelForm",
            of_answers=("references",),
            of_searches=(
                *("search", "n_best", "jit", "batch_sizes", "lengths", "left_out", "check_seconds"),
            ),
            of_sources=("alignment",),
            beams=Beams("a SavedModel"),
            opened_with=(
                *("beam", "length_penalty", "n_best", "source_language", "target_language"),
                "alignments",
            ),
        ),
        Format(
            "litert",
            "litert.export:export_litert",
            "place_checks:check_place_of_file",
            "litert.form:LiteRTForm",
            options=(*QUANTIZED, "lengths", "batch_sizes", "license", "origin", "progress"),
            of_searches=(
                *("searches", "beam_only", "n_best", "tokenizer", "calibration", "left_out"),
                *("source_language", "target_language"),
            ),
            of_sources=("alignment",),
            quantizations=("none", "float16", "int8", "int8_static", "int4"),
            calibrated="int8_static",
            beams=Beams(
                "a .tflite file",
                {"normalization": ("gnmt", "power")},
                '"power" with a `length_penalty` of 1 is "average", with 0 "none"',
            ),
            opened_with=(
                *("greedy", "beam", "n_best", "length_penalty", "extra_length", "max_output"),
                *("source_language", "target_language", "alignments"),
            ),
            refusal="litert.generated:check_run",  # if the file takes strings
        ),
        Format(
            "ctranslate2",
            "ctranslate2.export:export_ctranslate2",
            "ctranslate2.export:check_place",
            "ctranslate2.form:CTranslate2Form",
            options=(*QUANTIZED, "origin", "progress"),
            needs_vocabulary=True,
            quantizations=("none", "float16", "int8"),
            beams=Beams(
                "CTranslate2",
                {
                    "normalization": ("average", "power", "none"),
                    "stopping": ("count",),
                    "min_length": (1,),
                    "extra_length": (None,),
                },
                "it has no penalty like the paper's and no limit that depends on the source",
            ),
            opened_with=(
                *("greedy", "beam", "length_penalty", "normalization", "n_best", "max_output"),
                *("source_language", "target_language"),
            ),
            refusal="ctranslate2.expressible:check_run",
        ),
        Format(
            "marian",
            "marian.export:export_marian",
            "marian.export:check_place",
            "marian.form:MarianForm",
            options=(*QUANTIZED, "calibration", "origin", "progress"),
            needs_source=True,
            quantizations=("none", "int8"),
            calibrated="int8",
            refusal="marian.arrays:check_run",
        ),
    )
}


def forms() -> list[Any]:
    """Returns the forms that `keras_transformer.open` opens besides runs."""
    return [_imported(format.form) for format in FORMATS.values()]


def _imported(reference):
    module, name = reference.split(":")
    return getattr(importlib.import_module(f"keras_transformer.export.{module}"), name)
