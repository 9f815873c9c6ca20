"""The figures of an export: kept in the run, and printed."""

import json

import click

from keras_transformer.cli.export_sentences import FALLBACK


def record(run, **figures):
    """Keeps figures in the run, if it can be written: the export is in its place by now."""
    from keras_transformer.run import Run

    try:
        Run(run).update_metrics(**figures)
    except (OSError, ValueError) as error:  # not writable, or not JSON
        reason = getattr(error, "strerror", None) or error
        click.echo(f"Warning: {run} keeps no figures of this export: {reason}.", err=True)


def print_report(report, source):
    """Prints the figures of an export as JSON.

    Args:
        report: What the exporter returned.
        source: What it was checked with.
    """
    if FALLBACK in source:
        click.echo(f"Checked with {source}.", err=True)
    report = {**report, "checked_with": source}
    click.echo(json.dumps(report, indent=2, ensure_ascii=False))
