"""`keras-transformer threshold`: the threshold of a classifier with several labels."""

import click

from keras_transformer.cli.command import EXISTING_FILE, FOLDER, Command, refuse, standard
from keras_transformer.cli.help import option
from keras_transformer.files import json_text
from keras_transformer.native_code import ends_promptly
from keras_transformer.tasks.multi_label_classification.thresholds import AIMS


@click.command(cls=Command, example="keras-transformer threshold runs/tags --for label-f1")
@click.argument("run", type=FOLDER)
@option(
    "--for",
    "aim",
    type=click.Choice([aim.replace("_", "-") for aim in AIMS]),
    default="macro-f1",
    help="Metric to maximise: macro F1, micro F1, or the F1 of each label, with a threshold "
    "for each label.",
)
@option(
    "--split",
    default="validation",
    group="Data",
    help="Split of the run's own data to choose the threshold on: validation, train or test.",
)
@option(
    "--source",
    type=EXISTING_FILE,
    group="Data",
    help="File of texts, one per line, to use in place of a split.",
)
@option(
    "--reference",
    type=EXISTING_FILE,
    group="Data",
    help="File with the labels of each line of --source, separated by the run's separator.",
)
def threshold(run, aim, split, source, reference) -> None:
    """Choose the threshold of RUN, a classifier with several labels.

    Writes RUN/threshold.json, which predict, evaluate and export then use. A text gets every label
    whose probability is at least the threshold. Prints the new threshold as JSON, together with the
    metrics for the old and the new threshold. Do not choose the threshold on texts that you also
    use for evaluation.
    """
    if (source is None) != (reference is None):
        raise click.UsageError("--source and --reference go together.")
    if source:
        refuse(["split"], "has no effect with --source.")
    standard("stdout")  # fails early if stdout is closed
    from keras_transformer.training.tasks.multi_label_classification.choice import choose_threshold

    with ends_promptly():
        results = choose_threshold(run, aim.replace("-", "_"), split, source, reference)
    click.echo(json_text(results))
