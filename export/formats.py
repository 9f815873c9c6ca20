"""The formats of an export: which options, searches and quantisations each accepts.

A format is known without importing what writes it: each has requirements of its own.
"""

import dataclasses
import importlib

from keras_transformer.export.errors import ExportError


@dataclasses.dataclass(frozen=True)
class Beams:
    """The beams that a format can hold.

    Args:
        name: The format in an error, such as `"a .tflite file"`.
        values: Dictionary from fields of a `Beam` to the values that they may have.
        reason: Why it has no others, a clause for the error. `""`: there is none.
    """

    name: str
    values: dict = dataclasses.field(default_factory=dict)
    reason: str = ""

    @property
    def fixed(self):
        """The fields that have one value only: no option can change them."""
        return tuple(name for name, values in self.values.items() if len(values) == 1)

    def check(self, beam, any_normalization=False):
        """Raises a `ValueError` unless the format can hold a beam.

        Args:
            beam: The `Beam`.
            any_normalization: Whether its normalization does not matter, since it divides by 1.
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
    """A form in which a pipeline leaves this package.

    Args:
        name: Its name on the command line.
        exporter: The function that writes it: a module of this package, `:` and a name.
        options: Names of the exporter's options for every pipeline.
        of_answers: Those for a model that answers in one pass alone.
        of_searches: Those for a model that generates text alone.
        of_sources: Those for a model that generates text for a source alone.
        needs_source: Whether it is for models that generate text for a source alone.
        quantizations: How its weights may be stored.
        beams: The `Beams` that it can hold. `None`: none, it is searched greedily.
        opened_with: Options of `predict` that it takes when it is opened.
        check: The function that refuses a run before its weights are read, of the configuration,
            the tokenizers, the quantisation and the origin. `""`: there is none.
    """

    name: str
    exporter: str
    options: tuple = ("origin", "progress")
    of_answers: tuple = ()
    of_searches: tuple = ("left_out",)
    of_sources: tuple = ()
    needs_source: bool = False
    quantizations: tuple = ("none",)
    beams: Beams | None = None
    opened_with: tuple = ()
    check: str = ""

    def export(self, pipeline, path, samples, **options):
        """Exports a pipeline; returns the report of the exporter.

        Raises:
            ExportError: If the format is not for such a pipeline.
            ValueError: If an option has no effect on it.
        """
        taken = self.options_of(pipeline)
        for name in options:
            if name not in taken:
                raise ValueError(f"`{name}` has no effect on a model for {pipeline.task}.")
        return _imported(self.exporter)(pipeline, path, samples, **options)

    def options_of(self, pipeline):
        """Returns the names of the options that have an effect on a pipeline, a set.

        Raises:
            ExportError: If the format is not for such a pipeline.
        """
        self.require(pipeline)
        of_kind = self.of_searches if pipeline.generates else self.of_answers
        return {*self.options, *of_kind, *(self.of_sources if pipeline.has_source else ())}

    def require(self, pipeline):
        """Raises an `ExportError` if the format is not for such a pipeline."""
        if self.needs_source and not pipeline.has_source:
            raise ExportError(f"There is no export to {self.name} of a model for {pipeline.task}.")

    def check_run(self, run, quantize="none"):
        """Raises if it is known without the weights of a `Run` that there is no export of it.

        Raises:
            ExportError: With what the format cannot express.
            ValueError: If a file of the run is missing or damaged.
        """
        config = run.read_model_config()
        if config is not None and self.check:
            _imported(self.check)(config, run.load_tokenizers(), quantize, run.read_origin())


QUANTIZED = ("quantize", "min_agreement", "references", "max_loss", "max_score_loss")
FORMATS = {
    format.name: format
    for format in (
        Format(
            "saved-model",
            "saved_model.export:export_saved_model",
            of_answers=("references",),
            of_searches=("search", "n_best", "jit", "batch_sizes", "lengths", "left_out"),
            of_sources=("alignment",),
            beams=Beams("a SavedModel"),
            opened_with=("beam", "length_penalty", "n_best"),
        ),
        Format(
            "litert",
            "litert.export:export_litert",
            options=(*QUANTIZED, "lengths", "batch_sizes", "license", "origin", "progress"),
            of_searches=(
                *("searches", "n_best", "tokenizer", "calibration", "left_out"),
                *("source_language", "target_language"),
            ),
            of_sources=("alignment",),
            quantizations=("none", "float16", "int8", "int8_static"),
            beams=Beams(
                "a .tflite file",
                {"normalization": ("gnmt", "power"), "min_length": (1,)},
                '"power" with a `length_penalty` of 1 is "average", with 0 "none"',
            ),
            opened_with=(
                *("greedy", "beam", "n_best", "length_penalty", "extra_length", "max_output"),
            ),
            check="litert.strings:check_run",  # where the file is to take strings
        ),
        Format(
            "ctranslate2",
            "ctranslate2.export:export_ctranslate2",
            options=(*QUANTIZED, "origin", "progress"),
            needs_source=True,
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
            opened_with=("beam", "length_penalty", "normalization", "n_best"),
            check="ctranslate2.spec:check_run",
        ),
        Format(
            "marian",
            "marian.export:export_marian",
            options=(*QUANTIZED, "calibration", "origin", "progress"),
            needs_source=True,
            quantizations=("none", "int8"),
            check="marian.arrays:check_run",
        ),
    )
}


def _imported(place):
    module, name = place.split(":")
    return getattr(importlib.import_module(f"keras_transformer.export.{module}"), name)
