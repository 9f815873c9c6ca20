"""What the commands share: how they run, how they say what was wrong, and their options.

TensorFlow is imported by the commands that need it, so that `--help` answers at once.
"""

import importlib
import os
import pathlib
import sys
import tempfile

import click

FOLDER = click.Path(path_type=pathlib.Path)
FILE = click.Path(path_type=pathlib.Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=pathlib.Path, dir_okay=False, exists=True)

BEAM = click.option(
    "--beam",
    type=click.IntRange(1),
    metavar="N",
    help="Search with N hypotheses at a time; the paper's N is 4. Default: greedy search.",
)
LENGTH_PENALTY = click.option(
    "--length-penalty",
    type=click.FloatRange(0),
    metavar="A",
    help="With --beam: divide scores by ((5 + length) / 6) ** A.  [default: 0.6]",
)


class Command(click.Command):
    """A command that needs TensorFlow."""

    def invoke(self, context):  # noqa: D102
        _start_tensorflow()
        return super().invoke(context)


class Commands(click.Group):
    """Turns errors about the user's input into one line; `--traceback` shows where they rose."""

    command_class = Command

    def invoke(self, context):  # noqa: D102
        try:
            return super().invoke(context)
        except BrokenPipeError:  # translate ... | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            context.exit(1)
        except (ValueError, TypeError, OSError) as error:
            if context.params.get("traceback"):
                raise
            raise click.ClickException(" ".join(str(error).split())) from error


def search_options(beam, length_penalty):
    """The options of a search with a beam; none for greedy search."""
    if beam is None and length_penalty is not None:
        raise click.UsageError("--length-penalty needs --beam.")
    options = {"beam_size": beam, "length_penalty": length_penalty}
    return {name: value for name, value in options.items() if value is not None}


def _start_tensorflow():
    """Imports TensorFlow without its remarks on stderr, which no log level stops any more.

    Who sets `TF_CPP_MIN_LOG_LEVEL` sees them, and so does who meets an error on the way.
    """
    os.environ["KERAS_BACKEND"] = "tensorflow"
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as remarks:
        os.dup2(remarks.fileno(), 2)
        try:
            importlib.import_module("keras_transformer.model")  # registers the layers
            importlib.import_module("tensorflow").config.list_physical_devices()
        except BaseException:
            remarks.seek(0)
            os.write(stderr, remarks.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
