"""The base of every command: its start, errors in one line, and shared options.

A command imports TensorFlow only when it runs, so that `--help` answers at once.
"""

import contextlib
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Generator
from typing import Any, BinaryIO

import click
from click.core import ParameterSource
from click.exceptions import NoArgsIsHelpError

from keras_transformer.cli.argument_errors import naming_options
from keras_transformer.cli.help import Group, GroupedCommand, Option, count, option
from keras_transformer.cli.outputs import refuse_inputs
from keras_transformer.cli.tensorflow_start import start_tensorflow, start_tensorflow_later
from keras_transformer.free_memory import return_large_blocks
from keras_transformer.plugins import import_plugins
from keras_transformer.shards import Shard

MODULES = f"{__name__}.modules"  # key of the values of --module in `click.Context.meta`
FOLDER = click.Path(path_type=pathlib.Path)
EXISTING_FILE = click.Path(path_type=pathlib.Path, dir_okay=False, exists=True)


def max_length(default=None, least=1, group="Sizes") -> Callable[[Any], Any]:
    """Returns the option `--max-length`; without `default`, the default is the model's limit."""
    text = "Maximum length of inputs and outputs, including their end tokens."
    text = text if default else f"{text}  [default: the model's limit]"
    return count("--max-length", default, text, "TOKENS", least, group)


MAX_LENGTH = max_length()


class NumberList(click.ParamType):
    """Numbers separated by commas."""

    name = "numbers"

    def convert(self, value, param, ctx) -> tuple[float, ...]:
        """Returns a tuple of the numbers."""
        if not isinstance(value, str):
            return value
        try:
            return tuple(map(float, value.split(",")))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers, such as 0.2,0.4.", param, ctx)


class ShardType(click.ParamType):
    """A parameter that is a `Shard`, such as 0/4."""

    name = "shard"

    def convert(self, value, param, ctx) -> Shard:  # noqa: D102
        if isinstance(value, Shard):
            return value
        try:
            return Shard.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def shard(help, group) -> Callable[[Any], Any]:
    """Returns the option `--shard`.

    Args:
        help: Sentence about the work that is divided.
        group: Heading of the option in `--help`.
    """
    return option("--shard", type=ShardType(), metavar="I/N", help=help, group=group)


STRICT = option(
    "--strict",
    is_flag=True,
    group="Input and output",
    help="Stop at the first bad line with an error. The answers to earlier lines are written to "
    "stdout; with --output, no file is written.  [default: warn and write an empty line]",
)


def batch_size(help="Number of lines to process at a time.", group="Sizes") -> Callable[[Any], Any]:
    """Returns the option `--batch-size`."""
    return count("--batch-size", 64, help, group=group)


class Mistake(click.ClickException):
    """An error in the command line, explained in one line."""

    exit_code = 2


class PlainCommand(GroupedCommand):
    """A command whose errors name options as the command line does, and that keeps its inputs."""

    def parse_args(self, ctx, args) -> list[str]:  # noqa: D102
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # the shell only completes a word
            refuse_inputs(ctx)
        return rest

    def invoke(self, ctx) -> Any:  # noqa: D102
        with naming_options(ctx):
            return super().invoke(ctx)


class Command(PlainCommand):
    """A command that needs TensorFlow, and that can import modules of other packages."""

    def __init__(self, *arguments, **attributes):
        super().__init__(*arguments, **attributes)
        self.params.append(
            Option(
                ["--module"],
                metavar="NAME",
                multiple=True,
                expose_value=False,
                callback=lambda context, _, names: context.meta.update({MODULES: names}),
                help="Python module to import first, which registers your own tasks, layers, "
                "positions, scores or activations. May be repeated. Modules that installed "
                "packages declare as entry points are always imported.",
            )
        )

    def start_tensorflow(self) -> None:
        """Imports TensorFlow."""
        start_tensorflow()

    def invoke(self, ctx) -> Any:  # noqa: D102
        self.start_tensorflow()
        import_plugins(ctx.meta[MODULES], warn)
        return super().invoke(ctx)


class LateCommand(Command):
    """A command that needs TensorFlow for some models only: its start is left to them."""

    def start_tensorflow(self) -> None:  # noqa: D102
        start_tensorflow_later()


class Subcommands(Group):
    """Group of commands that need TensorFlow."""

    command_class = Command


class LeanCommand(Command):
    """A command in which TensorFlow returns free memory to the operating system.

    By default TensorFlow keeps as much memory as it has ever needed, for later use. Exports and
    conversions make copies of weights only once, and need the memory for something else.
    """

    def invoke(self, ctx) -> Any:  # noqa: D102
        os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")  # read when TensorFlow starts
        return_large_blocks()
        return super().invoke(ctx)


class LeanSubcommands(Group):
    """Group of commands in which TensorFlow returns free memory."""

    command_class = LeanCommand


class Commands(Subcommands):
    """Group that reports every expected error in one line; `--traceback` shows its origin.

    Ctrl-C ends the process silently with status 130 and SIGTERM with 143, as shells expect.
    """

    def make_context(self, *arguments, **options) -> click.Context:  # noqa: D102
        with _one_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx) -> Any:  # noqa: D102
        try:
            with _one_line():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            number = error.args[0] if error.args else signal.SIGINT
            ctx.exit(128 + number)
        except BrokenPipeError:  # translate ... | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)
        except Exception as error:
            if ctx.params.get("traceback") or not _is_expected(error):
                raise
            raise click.ClickException(_line(error)) from error


@contextlib.contextmanager
def _one_line():
    """Raises a `Mistake` in place of an error that click would print in several lines."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        text = " ".join(error.format_message().split())
        if type(error) is not click.UsageError and error.ctx is not None:  # one of click's own
            text += f" See `{error.ctx.command_path} --help`."
        raise Mistake(text) from error


@contextlib.contextmanager
def failing_in_one_line() -> Generator[None]:
    """Ends the process if stdout cannot be written, such as that of `--help` on a full disk."""
    try:
        yield
    except OSError as error:
        _lose_stdout(error)
    except SystemExit as end:
        try:
            if sys.stdout is not None:
                sys.stdout.flush()  # at exit, Python would print a traceback
        except OSError as error:
            _lose_stdout(error)
        raise end


def _lose_stdout(error):
    """Ends the process with the error of a write to stdout, which is replaced for good."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not isinstance(error, BrokenPipeError):
        click.echo(f"Error: {_line(error)}", err=True)
    sys.exit(1)


def _is_expected(error):
    tf = sys.modules.get("tensorflow")
    return isinstance(error, (ValueError, TypeError, OSError, MemoryError)) or (
        tf is not None and isinstance(error, tf.errors.OpError)
    )


def _line(error):
    """Returns the text of an error in one line."""
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        text = f"there is not enough memory. {error}"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: " if error.filename is not None else ""
        text += f"{error.strerror}."
    else:
        text = getattr(error, "message", None) or str(error)
    return " ".join(text.split())


def given(*names) -> str | None:
    """Returns the first of `names` that the user has set, or `None`.

    Args:
        *names: Names of parameters of the running command; without a command, none is set.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    sources = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    return next((name for name in names if context.get_parameter_source(name) in sources), None)


def refuse(names, reason) -> None:
    """Refuses options that would have no effect.

    Args:
        names: Names of parameters of the command.
        reason: Text of the error after the name of the option.

    Raises:
        click.UsageError: If the command line sets one of the options.
    """
    name = given(*names)
    if name is not None:
        raise click.UsageError(f"--{name.replace('_', '-')} {reason}")


def warn(line) -> None:
    """Prints a warning on stderr."""
    click.echo(f"Warning: {line}", err=True)


def standard(name) -> BinaryIO:
    """Returns the binary stream `stdin` or `stdout`.

    Raises:
        ValueError: If the command was started with this stream closed.
    """
    stream = getattr(sys, name)
    if stream is None:
        remedy = {
            "stdin": "Redirect a file to it, `< in.txt`, or name one with --input",
            "stdout": "Redirect it to a file, `> out.txt`, or name one with --output",
        }
        raise ValueError(f"{name} is closed. {remedy[name]}.")
    return stream.buffer


def start() -> None:
    """Prepares the process: reopens closed streams and lets SIGTERM end it as Ctrl-C does."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file that is opened gets its number
            os.open(os.devnull, os.O_RDWR)
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number, frame):
    raise KeyboardInterrupt(number)
