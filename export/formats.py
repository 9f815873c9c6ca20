"""Formats of an export, with the options, searches and quantisations that each accepts.

A format is a folder, whose `format.py` declares it, and a line in `FORMATS`. The module that writes
a format is imported only when it is used, because each depends on other libraries.
"""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from keras_transformer.export.errors import ExportError
from keras_transformer.export.options import BEAM, CONTINUATION, GENERATION, SOURCE
from keras_transformer.registry import Registry
from keras_transformer.search_settings import BeamSettings, CheckedSettings, settings_of
from keras_transformer.tasks.answering import Answering


@dataclasses.dataclass(frozen=True)
class Beams:
    """Beam searches that a format supports.

    Args:
        name: The format as errors call it, such as `"a .tflite file"`.
        values: Dictionary from fields of a `Beam` to their allowed values.
        reason: Reason for the restriction, a clause for the error. `""`: none is given.
        help, default_help: Help text of the option `--beam` of the export, and the default that it
            names. `None`: those of the setting.
    """

    name: str
    values: dict = dataclasses.field(default_factory=dict)
    reason: str = ""
    help: str | None = None
    default_help: str | None = None

    @property
    def fixed(self) -> tuple[str, ...]:
        """Names of the fields with a single allowed value, for which there are no options."""
        return tuple(name for name, values in self.values.items() if len(values) == 1)

    def check(self, beam, any_normalization=False) -> None:
        """Raises a `ValueError` unless the format supports a beam search.

        Args:
            beam: The `Beam`.
            any_normalization: Whether to accept any normalisation, because it divides by 1.
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


def beams_of_graphs(name: str, help: str) -> Beams:
    """Returns the `Beams` of a format whose graphs have the length penalty as an input.

    Args:
        name, help: See `Beams`.
    """
    return Beams(
        name,
        {"normalization": ("gnmt", "power")},
        '"power" with a `length_penalty` of 1 is "average", with 0 "none"',
        help=help,
        default_help="the run's own search if it is a beam search",
    )


@dataclasses.dataclass(frozen=True)
class Format:
    """A format to which pipelines are exported.

    Args:
        name: Name of the format on the command line.
        help: Help text of its command.
        example: Example of its command.
        options: Class of the exporter's options.
        exporter: Function that writes it, or its place, `"module:function"`.
        place: Function that refuses a path to which it cannot be written, or its place.
        form: The `Form` that opens it, or its place.
        suffix: Suffix of the file that it is. `""`: it is a folder.
        data: Names of the exporter's other arguments, such as `references`, for every pipeline.
        of_answers: Names of further ones for models that answer in one pass.
        of_searches: Names of further ones for models that generate text.
        of_pipeline: Names of the options of the command that change the pipeline before its export.
        needs_vocabulary: Whether only models that read texts can be exported.
        needs_source: Whether only those that generate text from a source can be exported.
        calibrated: The value of `quantize` that needs sentences to calibrate with. `""`: none does.
        beams: The supported `Beams`. `None`: only greedy search is supported.
        opened_with: Options of `predict` that apply when the export is opened.
        refusal: Function that refuses a run before its weights are read, or its place. Its
            arguments are the configuration, the tokenizers, the options and the origin. `None`:
            there is none.
    """

    name: str
    help: str
    example: str
    options: type[CheckedSettings]
    exporter: str | Callable
    place: str | Callable
    form: str | type[Any]
    suffix: str = ""
    data: tuple = ("origin", "progress")
    of_answers: tuple = ()
    of_searches: tuple = ("left_out",)
    of_pipeline: tuple = ("max_length", "shortlist")
    needs_vocabulary: bool = False
    needs_source: bool = False
    calibrated: str = ""
    beams: Any = None  # `Beams`
    opened_with: tuple = ()
    refusal: str | Callable | None = None

    def export(self, pipeline, path, samples, options=None, **data) -> dict[str, Any]:
        """Exports a pipeline and returns the exporter's report."""
        return _imported(self.exporter)(pipeline, path, samples, options, **data)

    @property
    def samples(self) -> bool:
        """`True` if an export can draw its outputs at random."""
        return "sample" in self.opened_with

    @property
    def quantizations(self) -> tuple[str, ...]:
        """Allowed values of the option `quantize`; empty without this option."""
        known = settings_of(self.options)
        return known["quantize"].choices if "quantize" in known else ()

    def check_place(self, path) -> None:
        """Raises an `ExportError` or an `OSError` unless the export can be written to `path`."""
        _imported(self.place)(path)

    def check(self, pipeline, options=None, **data) -> Any:
        """Returns the options of an export, after checks that they have an effect on a pipeline.

        Args:
            pipeline: A `Pipeline`.
            options: The options. One with its default counts as not given. `None`: the defaults.
            **data: Further arguments of the exporter by name. A false value counts as not given.

        Raises:
            ExportError: If the format does not support such a pipeline, or the pipeline was opened
                from an export.
            TypeError: If `pipeline` is not a pipeline, or `options` are those of another format.
            ValueError: If an option has no effect on the pipeline.
        """
        options = self.options() if options is None else options
        if not isinstance(options, self.options):
            raise TypeError(
                f"`options` must be `{self.options.__name__}`. Received: options={options!r}."
            )
        if not isinstance(pipeline, Answering):
            raise TypeError(
                "`pipeline` must be a pipeline, such as `Translator(model, tokenizer)`. "
                f"Received: an object of the class {type(pipeline).__name__}."
            )
        if not hasattr(pipeline, "model") or getattr(pipeline.model, "is_exported", False):
            raise ExportError(
                "A pipeline that was opened from an export cannot be exported. Open the run that "
                "it was exported from."
            )
        self._check_wording(pipeline)
        if pipeline.generates and pipeline.tokenizers and pipeline.tokenizers.languages:
            pipeline.tokenizers.languages.require_defaults()
        taken, given = self.options_of(pipeline), options.given()
        for name, value in {**data, **given}.items():
            if value and name not in taken:
                raise ValueError(
                    f"`{name}` has no effect on a model for {pipeline.task}. "
                    f"Received: {name}={value!r}."
                )
        search = getattr(options, "search", None) or pipeline.search
        for name, value in given.items():
            needs = settings_of(options)[name].needs
            if needs == BEAM and not isinstance(search, BeamSettings):
                raise ValueError(
                    f"`{name}` needs a `Beam`. Received: {name}={value!r}, search={search!r}."
                )
        return options

    def _check_wording(self, pipeline):
        """Raises `ExportError` for settings of answers that the format cannot hold.

        A glossary depends on each source, and so do several prefixes; `of_pipeline` lists the
        others that the format holds.
        """
        wording = getattr(pipeline, "wording", None)
        if wording is None:
            return
        given = {
            "glossary": wording.glossary,
            "banned": wording.banned,
            "prefix": wording.prefix,
            "token_scores": pipeline.token_scores,
        }
        several = not isinstance(wording.prefix, str)
        for name, value in given.items():
            if value and (name not in self.of_pipeline or name == "prefix" and several):
                raise ExportError(
                    f"An export to {self.name} cannot hold the setting `{name}` of the pipeline: "
                    "translate with the run, or export a pipeline without it."
                )

    def options_of(self, pipeline) -> set[str]:
        """Returns the set of names of the options and data that have an effect on a pipeline.

        Raises:
            ExportError: If the format does not support such a pipeline.
        """
        refused = self.needs_source and not pipeline.has_source
        if refused or self.needs_vocabulary and not pipeline.reads_text:
            raise ExportError(f"There is no export to {self.name} of a model for {pipeline.task}.")
        of_kind = self.of_searches if pipeline.generates else self.of_answers
        fits = {None: True, SOURCE: pipeline.has_source}
        fits |= dict.fromkeys((GENERATION, BEAM), pipeline.generates)
        fits[CONTINUATION] = pipeline.generates and not pipeline.has_source
        known = settings_of(self.options).items()
        return {*self.data, *of_kind, *(name for name, setting in known if fits[setting.needs])}

    def check_run(self, run, options) -> None:
        """Checks that a `Run` can be exported, as far as possible without loading its weights.

        Args:
            run: The `Run`.
            options: The options.

        Raises:
            ExportError: If the format does not support the model; the message says why.
            ValueError: If a file of the run is missing or damaged.
        """
        config = run.read_model_config() if self.refusal else None
        if config is None or config.tokens is not config.input or config.tokens is None:
            return  # it does not read tokens
        if not self.needs_source or None not in (config.encoder, config.decoder):
            _imported(self.refusal)(config, run.load_tokenizers(), options, run.read_origin())


# A new format of this package is added here.
FORMATS = Registry(
    "keras_transformer.export",
    {
        "saved-model": "saved_model.format:FORMAT",
        "litert": "litert.format:FORMAT",
        "onnx": "onnx.format:FORMAT",
        "ctranslate2": "ctranslate2.format:FORMAT",
        "marian": "marian.format:FORMAT",
    },
)


def forms() -> list[Any]:
    """Returns the forms that `keras_transformer.open` opens besides runs."""
    return [_imported(format.form) for format in FORMATS.values()]


def _imported(place):
    """Returns what has a place, `"module:name"`, or what is given in its place."""
    if not isinstance(place, str):
        return place
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)
