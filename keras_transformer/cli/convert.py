"""`keras-transformer convert`: a command for each format of checkpoints."""

import click

from keras_transformer.arguments import options_of
from keras_transformer.checkpoint_hints import quoted
from keras_transformer.cli.command import EXISTING_FILE, FOLDER, LeanSubcommands, max_length, warn
from keras_transformer.cli.help import option
from keras_transformer.cli.numbers import LimitedNumber
from keras_transformer.cli.outputs import OUTPUT
from keras_transformer.cli.places import check_folder
from keras_transformer.cli.search_options import line_of
from keras_transformer.config.stack import StackConfig
from keras_transformer.search_settings import LEAST_RATIO


@click.group(cls=LeanSubcommands, example="keras-transformer convert hf opus-mt-en-de runs/en-de")
def convert() -> None:
    """Convert a checkpoint of another project to a run."""


LICENSE = option(
    "--license",
    metavar="TEXT",
    group="Metadata",
    help="Licence of the checkpoint.  [default: the licence that the checkpoint names]",
)
NAME = option(
    "--name",
    metavar="TEXT",
    group="Metadata",
    help="Name of the checkpoint.  [default: the name of its repository, folder or file]",
)


KEEP = option(
    "--keep-tokens-of",
    "files",
    metavar="FILE",
    type=EXISTING_FILE,
    multiple=True,
    group="Model",
    help="Text file with one text per line. May be repeated. The vocabulary of RUN keeps only "
    "the tokens of these texts, special tokens and single characters.  [default: all tokens "
    "remain]",
)
LANGUAGES = [
    option(
        f"--{side}-language",
        metavar="CODE",
        group="Languages",
        help=f"Default {side} language of RUN if the model is multilingual.  [default: the "
        f"language that the checkpoint names{rest}]",
    )
    for side, rest in (("source", "; for recordings auto, which detects it"), ("target", ""))
]


@convert.command("hf", example="keras-transformer convert hf opus-mt-en-de runs/en-de")
@click.argument("directory", type=FOLDER)
@click.argument("run", type=OUTPUT)
@LANGUAGES[0]
@LANGUAGES[1]
@option(
    "--revision",
    metavar="NAME",
    group="Model",
    help="Branch, tag or commit of the repository that DIRECTORY names.  [default: its main "
    "branch]",
)
@option(
    "--task",
    metavar="NAME",
    group="Model",
    help="Task of RUN, if the files do not determine it: sparse_embedding for a masked language "
    "model that was trained as SPLADE and has no modules.json.  [default: the task of the "
    "checkpoint's head]",
)
@KEEP
@NAME
@LICENSE
def hugging_face(directory, run, **options) -> None:
    """Convert a model in Hugging Face's format.

    DIRECTORY is a folder with a model, for example from OPUS-MT. DIRECTORY may also be the name of
    a repository on Hugging Face's hub, such as Helsinki-NLP/opus-mt-en-de, which is downloaded if
    the package huggingface_hub is installed (extra hub). `model_type` in config.json determines the
    family of the model. Weights are read from model.safetensors or pytorch_model.bin, or from the
    files that the index of such a file names. No program in a file is run. The licence is read from
    README.md. RUN and all of its exports contain the name and the licence of the checkpoint.
    """
    write_run(run, directory, **options)


@convert.command(example="keras-transformer convert marian model.npz runs/en-de --vocab vocab.spm")
@click.argument("model", type=EXISTING_FILE)
@click.argument("run", type=OUTPUT)
@option(
    "--vocab",
    "vocabularies",
    type=EXISTING_FILE,
    multiple=True,
    group="Model",
    help="SentencePiece file of both languages, or Marian's table of tokens and ids (.yml, .json, "
    ".txt). Repeat the option for several files, source before target.  [default: the files that "
    "decoder.yml names, otherwise the ones beside MODEL]",
)
@option(
    "--gelu",
    type=click.Choice(["exact", "sigmoid"]),
    group="Model",
    help="Function that MODEL calls gelu; sigmoid is x * sigmoid(1.702 x), used before Marian "
    "1.12.3.  [default: depends on the version of Marian in MODEL, otherwise exact]",
)
@option(
    "--max-length-ratio",
    type=LimitedNumber(float, LEAST_RATIO),
    metavar="FACTOR",
    group="Model",
    help="End an output when it has FACTOR times as many tokens as its source, like Marian's "
    "max-length-factor. Browsers use 2.  [default: as in the .yml files beside MODEL, "
    "otherwise 3]",
)
@max_length(default=options_of(StackConfig)["max_length"].default, least=2, group="Model")
@KEEP
@NAME
@LICENSE
def marian(
    model, run, vocabularies, max_length, gelu, max_length_ratio, files, license, name
) -> None:
    """Convert a model of Marian.

    MODEL is a .npz or .bin file that contains the settings of the model. The 8-bit integers of a
    .bin file for browsers are converted to floats. In a release of OPUS-MT, source.spm and
    target.spm split texts, and the token ids come from the file vocab.yml.
    """
    options = {"license": license, "name": name, "max_length": max_length, "gelu": gelu}
    options["max_length_ratio"] = max_length_ratio
    write_run(run, model, files, vocabularies=vocabularies or None, **options)


def write_run(run, path, files=(), **options) -> None:
    """Writes the run of a checkpoint, and prints the command that uses it.

    Args:
        run: Folder of the run.
        path: Path of the checkpoint.
        files: Paths of text files whose tokens alone remain; empty: all tokens remain.
        **options: See `read_checkpoint`.
    """
    from keras_transformer.pretrained.read import read_checkpoint
    from keras_transformer.pretrained.trimming import check_files, summary, trim
    from keras_transformer.training.converted import check_place, write_converted

    check_folder(run)
    check_place(run)
    check_files(files)
    checkpoint = whole = read_checkpoint(path, **options)
    if files:
        checkpoint = trim(whole, files).checkpoint
    write_converted(checkpoint, run)
    for note in checkpoint.notes:
        warn(f"{note}.")
    if not checkpoint.origin.get("license"):
        warn(_no_license(checkpoint.origin.get("license_file")))
    if files:
        click.echo(f"{run}: {summary(whole, checkpoint)}.")
    click.echo(f"{run}: {checkpoint.model.count_params():,} parameters.")
    if checkpoint.search is not None:
        options = line_of(checkpoint.search)
        command = "translate" if checkpoint.task == "translation" else "predict"
        click.echo(f"Its default search: keras-transformer {command} {quoted(run)}{options}")


def _no_license(file):
    """Returns the warning for a checkpoint that names no licence, but may have a file with one."""
    if file is None:
        return "the checkpoint names no licence; name it with --license."
    return f"the checkpoint names no licence, but has the file {file}: name it with --license."
