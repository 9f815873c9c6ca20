"""`keras-transformer export`: a command for each form in which a run leaves this package."""

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FILE,
    FOLDER,
    MAX_LENGTH,
    Command,
    refuse,
)
from keras_transformer.cli.export_options import LENGTHS, SENTENCES, batch_sizes, quantize
from keras_transformer.cli.export_run import export_run, prepare
from keras_transformer.cli.export_sentences import languages_of, read_sentences
from keras_transformer.cli.places import check_suffix
from keras_transformer.cli.search_options import greedy_or_beam, n_best, option_of, search_of_run
from keras_transformer.cli.shortlist import SHORTLIST
from keras_transformer.export.formats import FORMATS

LITERT = FORMATS["litert"]


class Exports(click.Group):
    """The commands below `export`."""

    command_class = Command


@click.group(cls=Exports)
def export():
    """Write a run in a form that needs none of this package."""


@export.command("saved-model")
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@greedy_or_beam()
@n_best(
    "Outputs of an input that the signatures with several give.",
    "4, or the beam's N if that is less",
)
@click.option(
    "--jit",
    is_flag=True,
    help="Let XLA compile the searches when the server loads the model. On a processor TensorFlow "
    "Serving then needs --xla_cpu_compilation_enabled=true.",
)
@click.option(
    "--alignment",
    is_flag=True,
    help="Add the signature alignment: also what each token attended to, the mean of the heads of "
    "the decoder's last layer.",
)
@batch_sizes("1,4,16 with --jit")
@LENGTHS
@MAX_LENGTH
@SHORTLIST
@SENTENCES
def saved_model(
    run,
    directory,
    jit,
    alignment,
    batch_sizes,
    lengths,
    sentences,
    **options,
):
    """Write DIRECTORY/1/ as TensorFlow Serving expects it.

    Its signatures, where a model generates text: serving_default, strings to translations; n_best,
    strings to the best M of a beam; tokens and beam_tokens, the same with token ids; search,
    strings to the best M of a beam of 1 to N hypotheses, whose size, length penalty and longest
    output come with each sentence; with --alignment one of that name, which adds to what
    serving_default gives the tokens and what they attended to. --beam and the options that need it
    are those of every search with a beam; with --beam serving_default is one of them. A classifier
    has serving_default and tokens, to labels. DIRECTORY/1/README.md explains how to start the
    server and send requests. A Python program that loads the version must import tensorflow_text
    first.
    """
    shapes = {"batch_sizes": batch_sizes, "lengths": lengths}
    if not jit and any(shapes.values()):
        raise click.UsageError("--batch-sizes and --lengths need --jit.")
    options["search"] = search_of_run(run, options)
    options["alignment"] = (-1, None) if alignment else None
    FORMATS["saved-model"].check_place(directory)
    checked_with = read_sentences(run, sentences)
    export_run("saved-model", run, directory, checked_with, jit=jit, **shapes, **options)


@export.command()
@click.argument("run", type=FOLDER)
@click.argument("file", type=FILE)
@quantize(LITERT)
@click.option(
    "--calibration",
    type=EXISTING_FILE,
    help="For int8_static: sentences that show the ranges of the activations, one per line. "
    "Default: 200 of the run's training data.",
)
@option_of(
    "beam",
    "Also put in a search with N hypotheses, beside greedy search.",
    "the run's own search, if that is a beam",
)
@greedy_or_beam("beam", *LITERT.beams.fixed)
@n_best("With --beam: outputs that it returns.", 1)
@batch_sizes("1")
@LENGTHS
@MAX_LENGTH
@SHORTLIST
@click.option(
    "--alignment",
    is_flag=True,
    help="Let greedy search also return what each token attended to: the mean of the heads of the "
    "decoder's last layer.",
)
@click.option(
    "--license", help="Under which the model may be used: a line for the file's metadata."
)
@click.option(
    "--tokenizer",
    is_flag=True,
    help="Also put in signatures that take and give strings, for runtimes that register "
    "TensorFlow Text's operators. The vocabulary must be a unigram model.",
)
def litert(run, file, calibration, sentences, references, batch_sizes, alignment, **options):
    """Write FILE.tflite: token ids in and out, the decoding loop and the vocabulary inside."""
    from keras_transformer.decoding import Beam

    search = search_of_run(run, options)
    if not isinstance(search, Beam):
        refuse(["n_best"], "needs --beam.")
    if calibration and options["quantize"] != "int8_static":
        raise click.UsageError("--calibration needs --quantize int8_static.")
    check_suffix(file, ".tflite")
    files, whole = (sentences, references), options["tokenizer"]
    checked_with = prepare("litert", run, file, options["quantize"], *files, whole)
    options["searches"] = [search]
    options.update(batch_sizes=batch_sizes or (1,), **languages_of(run))
    options["alignment"] = (-1, None) if alignment else None
    if options["quantize"] == "int8_static":
        options["calibration"], *_ = read_sentences(run, calibration, splits=("train",))
    export_run("litert", run, file, checked_with, **options)


@export.command()
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@quantize(FORMATS["ctranslate2"])
def ctranslate2(run, directory, sentences, references, **options):
    """Write DIRECTORY as CTranslate2 loads it, with the vocabulary beside the model."""
    files = sentences, references
    checked_with = prepare("ctranslate2", run, directory, options["quantize"], *files)
    export_run("ctranslate2", run, directory, checked_with, **options)


@export.command()
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
    in_int8, files = options["quantize"] == "int8", (sentences, references)
    if calibration and not in_int8:
        raise click.UsageError("--calibration needs --quantize int8.")
    checked_with = prepare("marian", run, directory, options["quantize"], *files)
    if in_int8:
        options["calibration"], *_ = read_sentences(run, calibration, splits=("train",))
    export_run("marian", run, directory, checked_with, **options)
