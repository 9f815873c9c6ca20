"""The end of an export: its report is stored in the run, and printed."""

import click

from keras_transformer.cli.export_sentences import FALLBACK
from keras_transformer.files import json_text, write_json


def store_and_print(run, name, report, metrics, as_json) -> None:
    """Stores the results of an export in the run, and prints them.

    A failure to store them is only a warning, because the export is complete.

    Args:
        run: Folder of the run.
        name: Name of the format and the quantisation.
        report: The `Report`.
        metrics: Dictionary of the results to add to the run's metrics.
        as_json: Whether to print the whole report as JSON, in place of one line.
    """
    from keras_transformer.tasks.run import Run

    path, fields = Run(run).exports / f"{name}.json", report.fields()
    try:
        Run(run).update_metrics(**metrics)
        path.parent.mkdir(exist_ok=True)
        write_json(path, fields)
    except (OSError, ValueError) as error:  # not writable, or not JSON
        reason = getattr(error, "strerror", None) or error
        click.echo(f"Warning: {run} does not store the results of this export: {reason}.", err=True)
        path = None
    if FALLBACK in report.checked_with:
        click.echo(f"Checked with {report.checked_with}.", err=True)
    if as_json:
        click.echo(json_text(fields))
    else:
        differences = f"; differences in {path}" if path and report.has_differences else ""
        click.echo(f"{report.summary()}{differences}")
