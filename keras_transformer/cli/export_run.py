"""Export of a run to any format: early checks, test sentences and results."""

import click

from keras_transformer.cli.command import refuse, warn
from keras_transformer.cli.export_options import check_limits
from keras_transformer.cli.export_sentences import print_report, read_sentences, record
from keras_transformer.cli.progress import shown_progress
from keras_transformer.cli.search_options import OF_GREEDY_OR_BEAM
from keras_transformer.cli.shortlist import with_shortlist
from keras_transformer.export.formats import FORMATS
from keras_transformer.text.lines import parse_lines

# Parameters of the command that are not options of an exporter.
OF_THE_COMMAND = {
    *("run", "file", "directory", "sentences", "references", "max_length", "shortlist"),
}


def prepare(
    form, run, path, quantize, sentences, references, whole=True
) -> tuple[list, list | None, str]:
    """Makes all checks that need no model, and reads the sentences that test the export.

    Args:
        form: A key of `FORMATS`.
        run: Folder of the run.
        path: Path of the export.
        quantize: Number format of the stored weights.
        sentences, references: Files, or `None`; see `read_sentences`.
        whole: Whether to refuse a run that the format cannot express.

    Returns:
        The result of `read_sentences`.
    """
    from keras_transformer.tasks.run import Run

    check_limits(quantize, sentences, references)
    FORMATS[form].check_place(path)
    if whole:
        FORMATS[form].check_run(Run(run), quantize)
    return read_sentences(run, sentences, references)


def export_run(form, run, path, checked_with, max_length=None, shortlist=None, **options) -> None:
    """Exports a run, prints the report, and keeps its metrics in the run.

    Args:
        form, run, path: See `prepare`.
        checked_with: Result of `read_sentences`.
        max_length: Maximum length of inputs and outputs in tokens. `None`: the model's limit.
        shortlist: Path of a shortlist for the searches. `None`: no shortlist.
        **options: Options of the exporter. Those without effect on the run are left out.
    """
    from keras_transformer.tasks import open_run
    from keras_transformer.tasks.run import Run

    sentences, references, source = checked_with
    quantize = options.get("quantize")
    if options.get("min_agreement") is not None:
        options["min_agreement"] /= 100
    with shown_progress() as progress:
        progress("loading the run")
        pipeline = with_shortlist(open_run(run, max_length), shortlist, run)
        taken = FORMATS[form].options_of(pipeline)
        _check_parameters(pipeline, run, taken)
        _warn_of_search(run, path, taken)
        examples = parse_lines(pipeline.parse, sentences, "sentence")
        count = _affordable(pipeline, examples, progress)
        if references and quantize != "none":
            options["references"] = references[:count]
        if count < len(examples):
            options["left_out"] = len(examples) - count
        options.update(origin=Run(run).read_origin(), progress=progress)
        options = {name: value for name, value in options.items() if name in taken}
        report = FORMATS[form].export(pipeline, path, examples[:count], **options)
    name = form.replace("-", "_") + ("" if quantize in (None, "none") else f"_{quantize}")
    metrics = {f"{name}_agreement": 100 * report["agreement"]}
    if quantize is not None:
        metrics[f"{name}_bytes"] = report["bytes"]
    record(run, **metrics)
    print_report(report, source)


def _check_parameters(pipeline, run, taken):
    """Refuses options of the command line that have no effect on the run."""
    known = taken | OF_THE_COMMAND
    if pipeline.generates:
        known |= set(OF_GREEDY_OR_BEAM)
    others = [name for name in click.get_current_context().params if name not in known]
    refuse(others, f"has no effect on {run}, a run for {pipeline.task}.")


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
