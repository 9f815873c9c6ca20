"""Export of a run to any format: early checks, test sentences and results."""

import os
import pathlib
import time
from typing import Any

import click

from keras_transformer.cli.command import refuse, warn
from keras_transformer.cli.export_options import values_of
from keras_transformer.cli.export_report import store_and_print
from keras_transformer.cli.export_sentences import languages_of, read_sentences
from keras_transformer.cli.progress import shown_progress
from keras_transformer.cli.search_options import OF_GREEDY_OR_BEAM, SAMPLING
from keras_transformer.cli.shortlist import with_shortlist
from keras_transformer.cli.wording import wording
from keras_transformer.export.report import Report
from keras_transformer.native_code import ends_promptly
from keras_transformer.text.lines import parse_lines

# Parameters of the command that are not options of an exporter.
OF_THE_COMMAND = {
    *("run", "file", "directory", "sentences", "references", "max_length", "shortlist"),
    *("banned", "prefix", "as_json"),
}


def export_run(
    format,
    run,
    path,
    search=None,
    *,
    sentences,
    references=None,
    calibration=None,
    max_length=None,
    shortlist=None,
    banned=None,
    prefix=None,
    as_json=False,
    **options,
) -> None:
    """Exports a run, prints a summary, and keeps the report in the run.

    Everything that needs no model is checked before the run is opened. See `check_together` for
    options that have no effect.

    Args:
        format: The `Format`.
        run: Folder of the run.
        path: Path of the export.
        search: The search of the export. `None`: the format has none.
        sentences, references: Files, or `None`; see `read_sentences`.
        calibration: File of sentences to calibrate with. `None`: the run's training data.
        max_length: Maximum length of inputs and outputs in tokens. `None`: the model's limit.
        shortlist: Path of a shortlist for the searches. `None`: no shortlist.
        banned, prefix: See `wording`.
        as_json: See `finish`.
        **options: Options of the format. Those without effect on the run are left out.
    """
    from keras_transformer.tasks import open_run
    from keras_transformer.tasks.run import Run

    start = time.monotonic()
    quantize, values, data = options.get("quantize"), values_of(format, options), {}
    format.check_place(path)
    format.check_run(Run(run), format.options(**values))
    samples, correct, source = read_sentences(run, sentences, references)
    if quantize is not None and quantize == format.calibrated:
        data["calibration"], *_ = read_sentences(run, calibration, splits=("train",))
    folders = pathlib.Path(path), pathlib.Path(path).parent
    with ends_promptly(*folders), shown_progress() as progress:
        progress("loading the run")
        pipeline = open_run(run, max_length)
        if shortlist is not None:
            pipeline = with_shortlist(pipeline, shortlist, run)
        words = {
            name: value for name, value in wording(banned=banned, prefix=prefix).items() if value
        }
        pipeline = pipeline.with_settings(**words) if words else pipeline
        taken = format.options_of(pipeline)
        _check_parameters(pipeline, run, taken)
        if _is_searched(pipeline):
            pipeline = pipeline.with_search(search)
        else:
            _warn_of_search(run, path, taken)
        examples = parse_lines(pipeline.parse, samples, "sentence")
        _check_paths(pipeline, sentences, examples)
        count = _affordable(pipeline, examples, progress)
        if correct and quantize != "none":
            data["references"] = correct[:count]
        if count < len(examples):
            data["left_out"] = len(examples) - count
        if "source_language" in taken:
            values |= languages_of(run)
        values["search"] = search
        data |= {"origin": Run(run).read_origin(), "progress": progress}
        chosen, data = ({n: v for n, v in d.items() if n in taken} for d in (values, data))
        results = format.export(pipeline, path, examples[:count], format.options(**chosen), **data)
    name = format.name.replace("-", "_") + ("" if quantize in (None, "none") else f"_{quantize}")
    metrics = {f"{name}_agreement": 100 * results["agreement"]}
    if quantize is not None:
        metrics[f"{name}_bytes"] = results["bytes"]
    _warn_of_time(results)
    report = Report(path, results, source, time.monotonic() - start)
    store_and_print(run, name, report, metrics, as_json)


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
        known |= {*OF_GREEDY_OR_BEAM, *SAMPLING} - {"ctc"}
    if _is_searched(pipeline):
        known |= {*OF_GREEDY_OR_BEAM}
    others = [name for name in click.get_current_context().params if name not in known]
    refuse(others, f"has no effect on {run}, a run for {pipeline.task}.")


def _warn_of_time(results):
    """Warns if there was no time for a part of the check."""
    not_called = results.get("not_called")
    if not_called:
        most, count = 3, len(not_called)
        names = ", ".join(not_called[:most]) + (f" and {count - most} more" * (count > most))
        warn(
            f"the check compared {results['sentences']} sentences and ended before it had called "
            f"everything; it left out {names}: increase --check-seconds"
        )


def _is_searched(pipeline):
    """Returns whether a pipeline gives single answers, which one search finds."""
    return not pipeline.generates and pipeline.search is not None


def _warn_of_search(run, path, taken):
    """Warns if the format cannot store the run's own search."""
    from keras_transformer.decoding import Greedy
    from keras_transformer.tasks.run import Run

    own = Run(run).read_search() or Greedy()
    if own != Greedy(own.max_length) and "search" not in taken:
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
