"""`keras-transformer convert`: a command for each kind of checkpoint that becomes a run."""

import click

from keras_transformer.cli.command import EXISTING_FILE, FOLDER, Command, max_length, warn
from keras_transformer.cli.places import check_folder
from keras_transformer.cli.search_options import line_of
from keras_transformer.config.arguments import options_of
from keras_transformer.config.stack import StackConfig


class Conversions(click.Group):
    """The commands below `convert`."""

    command_class = Command


@click.group(cls=Conversions)
def convert():
    """Make a run of a checkpoint of another project."""


LICENSE = click.option(
    "--license", help="Under which the checkpoint may be used.  [default: what it says itself]"
)
NAME = click.option("--name", help="Name of the checkpoint.  [default: what it says itself]")


@convert.command("hf")
@click.argument("directory", type=FOLDER)
@click.argument("run", type=FOLDER)
@LICENSE
@NAME
def hugging_face(directory, run, license, name):
    """Make RUN of DIRECTORY, a model in Hugging Face's format, such as one of OPUS-MT.

    Its family is that of `model_type` in config.json. Weights are read from model.safetensors or
    the files that model.safetensors.index.json names, and the licence from README.md. Licence and
    name go into RUN and into all of its exports.
    """
    write_run(run, directory, license=license, name=name)


@convert.command()
@click.argument("model", type=EXISTING_FILE)
@click.argument("run", type=FOLDER)
@click.option(
    "--vocab",
    "vocabularies",
    type=EXISTING_FILE,
    multiple=True,
    help="SentencePiece file of both languages; twice for source and target.  [default: the .spm "
    "files beside MODEL]",
)
@max_length(default=options_of(StackConfig)["max_length"].default, least=2)
@click.option(
    "--gelu",
    type=click.Choice(["exact", "sigmoid"]),
    help="Which function MODEL means by the activation gelu; sigmoid: x * sigmoid(1.702 x), as "
    "before Marian 1.12.3.  [default: by the version of Marian in MODEL, or exact]",
)
@LICENSE
@NAME
def marian(model, run, vocabularies, max_length, gelu, license, name):
    """Make RUN of MODEL, a .npz or .bin file of Marian, with the settings inside it.

    A .bin file in 8 bits, as browsers have it, becomes the floats that it stands for.
    """
    if len(vocabularies) > 2:
        raise click.UsageError("--vocab must be given once, or twice: for source and target.")
    options = {"license": license, "name": name, "max_length": max_length, "gelu": gelu}
    write_run(run, model, vocabularies=vocabularies or None, **options)


def write_run(run, path, **options):
    """Writes the run of a checkpoint, and prints what to do with it.

    Args:
        run: Folder of the run.
        path: Path of the checkpoint.
        **options: See `read_checkpoint`.
    """
    from keras_transformer.pretrained.read import read_checkpoint
    from keras_transformer.training.converted import check_place, write_converted

    check_folder(run)
    check_place(run)
    checkpoint = read_checkpoint(path, **options)
    write_converted(checkpoint, run)
    for note in checkpoint.notes:
        warn(f"{note}.")
    if not checkpoint.origin.get("license"):
        warn("the checkpoint names no licence; give it with --license.")
    click.echo(f"{run}: {checkpoint.model.count_params():,} parameters.")
    if checkpoint.search is not None:
        options = line_of(checkpoint.search)
        click.echo(f"It is searched by default with: keras-transformer translate {run}{options}")
