"""`keras-transformer export marian`."""

import click

from keras_transformer.cli.command import EXISTING_FILE, FOLDER, Command
from keras_transformer.cli.export import export_quantized, refuse_run
from keras_transformer.cli.export_options import check_limits, quantize
from keras_transformer.cli.export_sentences import read_sentences
from keras_transformer.cli.shortlist import SHORTLIST
from keras_transformer.export.formats import FORMATS


@click.command(cls=Command)
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@quantize(FORMATS["marian"])
@click.option(
    "--calibration",
    type=EXISTING_FILE,
    help="For int8: sentences that show the sizes of the activations, one per line. Default: 200 "
    "of the run's training data.",
)
@SHORTLIST
def marian(run, directory, calibration, sentences, references, **options):
    """Write DIRECTORY as Marian loads it; in int8 also as browsers have it."""
    from keras_transformer.export.marian.export import FILES
    from keras_transformer.export.place_checks import check_place_of_folder

    in_int8 = options["quantize"] == "int8"
    if calibration and not in_int8:
        raise click.UsageError("--calibration needs --quantize int8.")
    check_limits(options["quantize"], sentences, references)
    check_place_of_folder(directory, FILES)
    refuse_run("marian", run, options["quantize"])
    checked_with = read_sentences(run, sentences, references)
    if in_int8:
        options["calibration"], *_ = read_sentences(run, calibration, splits=("train",))
    export_quantized("marian", run, directory, checked_with, **options)
