"""Export of a run to any format: early checks, test sentences and results."""

import os
import pathlib
from typing import Any

import click

from keras_transformer.cli.command import refuse, warn
from keras_transformer.cli.export_options import check_limits
from keras_transformer.cli.export_sentences import (
    languages_of,
    print_report,
    read_sentences,
    record,
)
from keras_transformer.cli.progress import shown_progress
from keras_transformer.cli.search_options import OF_GREEDY_OR_BEAM
from keras_transformer.cli.shortlist import with_shortlist
from keras_transformer.export.formats import FORMATS
from keras_transformer.native_code import ends_promptly
from keras_transformer.text.lines import parse_lines

# Parameters of the command that are not options of an exporter.
OF_THE_COMMAND = {
    *("run", "file", "directory", "sentences", "references", "max_length", "shortlist"),
}


def export_run(
    form,
    run,
    path,
    sentences,
    references=None,
    calibration=None,
    max_length=None,
    shortlist=None,
    **options,
) -> None:
    """Exports a run, prints the report, and keeps its metrics in the run.

    Everything that needs no model is checked before the run is opened.

    Args:
        form: A key of `FORMATS`.
        run: Folder of the run.
        path: Path of the export.
        sentences, references: Files, or `None`; see `read_sentences`.
        calibration: File of sentences to calibrate with. `None`: the run's training data.
        max_length: Maximum length of inputs and outputs in tokens. `None`: the model's limit.
        shortlist: Path of a shortlist for the searches. `None`: no shortlist.
        **options: Options of the exporter. Those without effect on the run are left out.
    """
    from keras_transformer.tasks import open_run
    from keras_transformer.tasks.run import Run

    format, quantize = FORMATS[form], options.get("quantize")
    if calibration and quantize != format.calibrated:
        raise click.UsageError(f"--calibration needs --quantize {format.calibrated}.")
    if quantize is not None:
        check_limits(quantize, sentences, references)
    format.check_place(path)
    if options.get("tokenizer", True):  # otherwise the format expresses every run
        format.check_run(Run(run), quantize)
    samples, correct, source = read_sentences(run, sentences, references)
    if quantize is not None and quantize == format.calibrated:
        options["calibration"], *_ = read_sentences(run, calibration, splits=("train",))
    if "alignment" in options:
        options["alignment"] = (-1, None) if options["alignment"] else None
    if options.get("min_agreement") is not None:
        options["min_agreement"] /= 100
    folders = pathlib.Path(path), pathlib.Path(path).parent
    with ends_promptly(*folders), shown_progress() as progress:
        progress("loading the run")
        pipeline = open_run(run, max_length)
        if shortlist is not None:
            pipeline = with_shortlist(pipeline, shortlist, run)
        taken = format.options_of(pipeline)
        _check_parameters(pipeline, run, taken)
        if _is_searched(pipeline):
            pipeline = pipeline.with_search(_search_in(options))
        else:
            _warn_of_search(run, path, taken)
        examples = parse_lines(pipeline.parse, samples, "sentence")
        _check_paths(pipeline, sentences, examples)
        count = _affordable(pipeline, examples, progress)
        if correct and quantize != "none":
            options["references"] = correct[:count]
        if count < len(examples):
            options["left_out"] = len(examples) - count
        if "source_language" in taken:
            options.update(languages_of(run))
        options.update(origin=Run(run).read_origin(), progress=progress)
        options = {name: value for name, value in options.items() if name in taken}
        report = format.export(pipeline, path, examples[:count], **options)
    name = form.replace("-", "_") + ("" if quantize in (None, "none") else f"_{quantize}")
    metrics = {f"{name}_agreement": 100 * report["agreement"]}
    if quantize is not None:
        metrics[f"{name}_bytes"] = report["bytes"]
    record(run, **metrics)
    _warn_of_time(report)
    print_report(report, source)


def _check_paths(pipeline, file, lines):
    """Raises a `ValueError` unless every line of a file is a path, where inputs are files."""
    from keras_transformer.export.parity import shortened

    codec: Any = getattr(pipeline, "codec_class", None)
    if file is None or not getattr(codec, "suffixes", ()):
        return
    for number, line in enumerate(lines, start=1):
        if not os.path.isfile(line):
            raise ValueError(
                f"{file}, line {number}: must be the path of a file, the {codec.example} to check "
                f"the export with. Received: {shortened(line)!r}."
            )


def _check_parameters(pipeline, run, taken):
    """Refuses options of the command line that have no effect on the run."""
    known = taken | OF_THE_COMMAND
    if pipeline.generates:
        known |= {*OF_GREEDY_OR_BEAM} - {"ctc"}
    if _is_searched(pipeline):
        known |= {*OF_GREEDY_OR_BEAM}
    others = [name for name in click.get_current_context().params if name not in known]
    refuse(others, f"has no effect on {run}, a run for {pipeline.task}.")


def _warn_of_time(report):
    """Warns if there was no time for a part of the check."""
    not_called = report.get("not_called")
    if not_called:
        most, count = 3, len(not_called)
        names = ", ".join(not_called[:most]) + (f" and {count - most} more" * (count > most))
        warn(
            f"the check compared {report['sentences']} sentences and ended before it had called "
            f"everything; it left out {names}: increase --check-seconds"
        )


def _is_searched(pipeline):
    """Returns whether a pipeline gives single answers, which one search finds."""
    return not pipeline.generates and pipeline.search is not None


def _search_in(options):
    """Returns the only search of a format's options."""
    return options["search"] if "search" in options else options["searches"][0]


def _warn_of_search(run, path, taken):
    """Warns if the format cannot store the run's own search."""
    from keras_transformer.decoding import Beam
    from keras_transformer.tasks.run import Run

    own = Run(run).read_search()
    if isinstance(own, Beam) and not {"search", "searches"} & taken:
        warn(f"{path} cannot store the run's own search, {own}; it uses greedy search.")


def _affordable(pipeline, examples, progress):
    """Returns how many examples the check can compare in time; warns if that is not all."""
    from keras_transformer.export.extent import affordable

    if not pipeline.generates:
        return len(examples)
    count = affordable(pipeline, examples, progress)
    if count < len(examples):
        warn(
            f"the check compares {count} of {len(examples)} sentences: all of them would take "
            "many minutes, perhaps because the model does not stop generating"
        )
    return count
