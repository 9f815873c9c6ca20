"""The frame of every command: how it runs, its errors in one line, and shared options.

TensorFlow is imported by the commands that need it, so that `--help` answers at once.
"""

import contextlib
import functools
import importlib
import math
import os
import pathlib
import re
import signal
import sys
import tempfile

import click
from click.core import ParameterSource
from click.exceptions import NoArgsIsHelpError

from keras_transformer.shards import Shard

FOLDER = click.Path(path_type=pathlib.Path)
FILE = click.Path(path_type=pathlib.Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=pathlib.Path, dir_okay=False, exists=True)
# A line of TensorFlow's C++ log: its severity, after the date where an older release writes one.
LOGGED = re.compile(rb"(?:[0-9]{4}-[0-9-]+ [0-9:.]+: )?([IWEF])(?:[0-9]{4} [0-9:.]+| )")


def max_length(default=None, least=1):
    """Returns the option `--max-length`; without a default it is the model's."""
    text = "Longest input and longest output, their ends included."
    return click.option(
        "--max-length",
        type=click.IntRange(least),
        default=default,
        show_default=default is not None,
        metavar="TOKENS",
        help=text if default else f"{text}  [default: the model's]",
    )


MAX_LENGTH = max_length()


class ShardType(click.ParamType):
    """A `Shard` such as 0/4."""

    name = "shard"

    def convert(self, value, param, context):  # noqa: D102
        if isinstance(value, Shard):
            return value
        try:
            return Shard.parse(value)
        except ValueError as error:
            self.fail(str(error), param, context)


def shard(help):
    """Returns the option `--shard`, whose help says what is divided."""
    return click.option("--shard", type=ShardType(), metavar="I/N", help=help)


STRICT = click.option(
    "--strict",
    is_flag=True,
    help="Stop at the first bad line, with an error; the answers to the lines before it are "
    "written. With --output there is no file then.  [default: warn, and leave its answer empty]",
)


def batch_size(help=None):
    """Returns the option `--batch-size`, whose help says what is done with so many lines."""
    return click.option(
        "--batch-size", default=64, show_default=True, type=click.IntRange(1), help=help
    )


class FiniteRange(click.FloatRange):
    """A `click.FloatRange` without infinity and NaN."""

    def convert(self, value, param, ctx):  # noqa: D102
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


class Mistake(click.ClickException):
    """A wrong command line, explained in one line."""

    exit_code = 2


class Command(click.Command):
    """A command that needs TensorFlow."""

    def invoke(self, context):  # noqa: D102
        _start_tensorflow()
        return super().invoke(context)


class Commands(click.Group):
    """Turns every error that is not a bug into one line; `--traceback` shows where it rose.

    Ctrl-C ends with the status 130 and SIGTERM with 143, as shells expect it, without a word.
    """

    command_class = Command

    def make_context(self, *arguments, **options):  # noqa: D102
        with _one_line():
            return super().make_context(*arguments, **options)

    def invoke(self, context):  # noqa: D102
        try:
            with _one_line():
                return super().invoke(context)
        except KeyboardInterrupt as error:
            number = error.args[0] if error.args else signal.SIGINT
            context.exit(128 + number)
        except BrokenPipeError:  # translate ... | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            context.exit(1)
        except Exception as error:
            if context.params.get("traceback") or not _is_expected(error):
                raise
            raise click.ClickException(_line(error)) from error


@contextlib.contextmanager
def _one_line():
    """Makes a `Mistake` of what click would explain in several lines."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        text = " ".join(error.format_message().split())
        if type(error) is not click.UsageError and error.ctx is not None:  # one of click's own
            text += f" See `{error.ctx.command_path} --help`."
        raise Mistake(text) from error


def _is_expected(error):
    tf = sys.modules.get("tensorflow")
    return isinstance(error, (ValueError, TypeError, OSError, MemoryError)) or (
        tf is not None and isinstance(error, tf.errors.OpError)
    )


def _line(error):
    """An error in one line."""
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        text = f"there is not enough memory. {error}"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: " if error.filename is not None else ""
        text += f"{error.strerror}."
    else:
        text = getattr(error, "message", None) or str(error)
    return " ".join(text.split())


def given(*names):
    """Returns which parameters of the command the command line names: the first, or `None`."""
    context = click.get_current_context()
    sources = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    return next((name for name in names if context.get_parameter_source(name) in sources), None)


def refuse(names, reason):
    """Refuses options that would have no effect.

    Args:
        names: Names of parameters of the command.
        reason: What follows the name of the first that the command line has.

    Raises:
        click.UsageError: If the command line has one of them.
    """
    name = given(*names)
    if name is not None:
        raise click.UsageError(f"--{name.replace('_', '-')} {reason}")


def warn(line):
    """Prints a warning on stderr."""
    click.echo(f"Warning: {line}", err=True)


def standard(name):
    """Returns the binary stream of `stdin` or `stdout`.

    Raises:
        ValueError: If whoever started the command closed it.
    """
    stream = getattr(sys, name)
    if stream is None:
        remedy = {
            "stdin": "Give it lines, `< in.txt`, or name a file with --input",
            "stdout": "Send it somewhere, `> out.txt`, or name a file with --output",
        }
        raise ValueError(f"{name} is closed. {remedy[name]}.")
    return stream.buffer


def start():
    """Prepares the process: closed streams do no harm, SIGTERM ends like Ctrl-C."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # or the next file to be opened would be taken for it
            os.open(os.devnull, os.O_RDWR)
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number, frame):
    raise KeyboardInterrupt(number)


def _start_tensorflow():
    """Imports TensorFlow without its remarks on stderr, which no log level stops by itself.

    `TF_CPP_MIN_LOG_LEVEL` chooses those that are shown nevertheless: 3, which is the default, none;
    2 errors; 1 warnings as well; 0 everything at once. An error on the way shows all of them.
    """
    os.environ["KERAS_BACKEND"] = "tensorflow"
    # What matters of its errors is raised as well.
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    level = int(level) if re.fullmatch("[0-9]+", level) else 0  # as TensorFlow reads it
    if level == 0:
        return
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as remarks:
        os.dup2(remarks.fileno(), 2)
        shown = functools.partial(remarks_of_level, level=level)
        try:
            importlib.import_module("keras_transformer.models.transformer")  # registers the layers
            importlib.import_module("tensorflow").config.list_physical_devices()
        except Exception:
            shown = bytes  # all of them
            raise
        finally:
            os.dup2(stderr, 2)
            remarks.seek(0)
            os.write(stderr, shown(remarks.read()))
            os.close(stderr)


def remarks_of_level(remarks, level):
    """Returns the lines of TensorFlow's C++ log that a log level shows.

    Args:
        remarks: Bytes, what it wrote.
        level: Lowest level that is shown, from 1: 1 of warnings, 2 of errors, 3 of fatal errors.
    """
    return b"".join(
        line
        for line in remarks.splitlines(keepends=True)
        if (begin := LOGGED.match(line)) and b"IWEF".index(begin[1]) >= level
    )
