"""`keras-transformer export`: a command for each export format."""

import click

from keras_transformer.cli.command import FILE, FOLDER, LeanSubcommands, refuse
from keras_transformer.cli.export_options import (
    CHECK_TIME,
    LENGTHS,
    MAX_LENGTH,
    SENTENCES,
    batch_sizes,
    calibration,
    quantize,
)
from keras_transformer.cli.export_run import export_run
from keras_transformer.cli.help import option
from keras_transformer.cli.places import check_suffix
from keras_transformer.cli.search_options import (
    CTC,
    greedy_or_beam,
    n_best,
    option_of,
    search_of_run,
)
from keras_transformer.cli.shortlist import SHORTLIST
from keras_transformer.export.formats import FORMATS

LITERT = FORMATS["litert"]


@click.group(cls=LeanSubcommands, example="keras-transformer export litert runs/base model.tflite")
def export() -> None:
    """Export a run to a format that works without this package."""


@export.command(
    "saved-model",
    example="keras-transformer export saved-model runs/base serving/base --beam 4",
)
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@greedy_or_beam()
@CTC
@n_best(
    "Number of outputs that the signatures with several outputs return.",
    "4, or the beam's N if that is less",
)
@SHORTLIST
@option(
    "--alignment",
    is_flag=True,
    group="Graph",
    help="Add the signature alignment, which also returns attention weights: the mean over the "
    "heads of the decoder's last layer.",
)
@option(
    "--jit",
    is_flag=True,
    group="Graph",
    help="Let XLA compile the searches when the server loads the model. On a CPU, TensorFlow "
    "Serving then needs --xla_cpu_compilation_enabled=true.",
)
@batch_sizes("1,4,16 with --jit")
@LENGTHS
@MAX_LENGTH
@SENTENCES
@CHECK_TIME
def saved_model(run, directory, **options) -> None:
    """Write a SavedModel for TensorFlow Serving.

    Writes DIRECTORY/1/, or the next version if there is one. Its README.md explains how to start
    the server and send requests. A Python program must import tensorflow_text before it loads the
    SavedModel.

    A model that generates text has these signatures:

    \b
    serving_default  strings to texts, by greedy search or the beam of --beam
    n_best           strings to the best M outputs of a beam
    tokens           as serving_default, with token ids
    beam_tokens      as n_best, with token ids
    search           as n_best; beam size (1 to N), length penalty and
                     maximum output length are inputs of each sentence
    alignment        as serving_default, with tokens and attention weights
                     (with --alignment)
    languages        as serving_default; source and target language are inputs
                     of each sentence (of multilingual models)

    The options of beam search apply to every signature with a beam. A classifier has the
    signatures serving_default and tokens, which return labels. Speech recognition has
    serving_default and samples, and options, where language, task and timestamps are inputs, if the
    model has these choices.
    """  # noqa: D301
    if not options["jit"] and (options["batch_sizes"] or options["lengths"]):
        raise click.UsageError("--batch-sizes and --lengths need --jit.")
    options["search"] = search_of_run(run, options)
    export_run("saved-model", run, directory, **options)


@export.command(example="keras-transformer export litert runs/base model.tflite --quantize int8")
@click.argument("run", type=FOLDER)
@click.argument("file", type=FILE)
@option_of(
    "beam",
    "Also export beam search with N hypotheses, beside greedy search.",
    "the run's own search if it is a beam search",
)
@greedy_or_beam("beam", *LITERT.beams.fixed)
@CTC
@n_best("With --beam: number of outputs that beam search returns.", 1)
@option(
    "--beam-only",
    is_flag=True,
    group="Search",
    help="Leave out greedy search, so that a program that loads the file needs less memory.",
)
@SHORTLIST
@batch_sizes("1")
@LENGTHS
@MAX_LENGTH
@quantize(LITERT)
@calibration(LITERT, "ranges")
@option(
    "--alignment",
    is_flag=True,
    group="Contents of the file",
    help="Let greedy search also return attention weights: the mean over the heads of the "
    "decoder's last layer.",
)
@option(
    "--tokenizer",
    is_flag=True,
    group="Contents of the file",
    help="Add signatures that take and return strings, for runtimes that register TensorFlow "
    "Text's operators. The vocabulary must be a unigram model.",
)
@option(
    "--license",
    metavar="TEXT",
    group="Contents of the file",
    help="Licence of the model, for the metadata of the file.",
)
def litert(run, file, batch_sizes, **options) -> None:
    """Write a .tflite file for LiteRT.

    The file contains the decoding loop and the vocabulary. Its inputs and outputs are token ids.
    """
    from keras_transformer.decoding import Beam

    search = search_of_run(run, options)
    if not isinstance(search, Beam):
        refuse(["n_best", "beam_only"], "needs --beam.")
    if options["beam_only"]:
        refuse(["alignment"], "has no effect with --beam-only.")
    check_suffix(file, ".tflite")
    shapes = {"batch_sizes": batch_sizes or (1,)}
    export_run("litert", run, file, searches=[search], **shapes, **options)


@export.command(example="keras-transformer export ctranslate2 runs/base ct2 --quantize int8")
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@MAX_LENGTH
@quantize(FORMATS["ctranslate2"])
def ctranslate2(run, directory, **options) -> None:
    """Write a model folder for CTranslate2.

    DIRECTORY also contains the vocabulary. RUN generates text, or answers in one pass about a text;
    in that case head.npz in DIRECTORY has the weights of the prediction head.
    """
    export_run("ctranslate2", run, directory, **options)


@export.command(example="keras-transformer export marian runs/student bergamot --quantize int8")
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@SHORTLIST
@quantize(FORMATS["marian"])
@calibration(FORMATS["marian"], "scales")
def marian(run, directory, **options) -> None:
    """Write a model folder for Marian.

    With int8, DIRECTORY also contains the model for the translation engine of browsers.
    """
    export_run("marian", run, directory, **options)
