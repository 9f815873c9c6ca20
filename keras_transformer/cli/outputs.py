"""Paths that a command writes, and the check that none of them is also an input."""

import contextlib
import itertools
import os
import pathlib
import stat
from collections.abc import Iterator

import click


class OutputPath(click.Path):
    """A path that the command writes. All other paths of a command are inputs."""


OUTPUT = OutputPath(path_type=pathlib.Path)
OUTPUT_FILE = OutputPath(path_type=pathlib.Path, dir_okay=False)


def refuse_inputs(ctx: click.Context) -> None:
    """Refuses an output that is the same file or folder as an input, also through a link.

    Args:
        ctx: The context of a command whose parameters have their values. stdin is an input, and
            stdout an output.

    Raises:
        click.UsageError: If a path is both. The message names both parameters.
    """
    paths = [*_paths(ctx)]
    inputs = [(name, status) for name, is_output, status in paths if not is_output]
    outputs = [(name, status) for name, is_output, status in paths if is_output]
    inputs += _stream("stdin", 0)
    outputs += _stream("stdout", 1)
    for (output, one), (name, other) in itertools.product(outputs, inputs):
        if os.path.samestat(one, other):
            raise click.UsageError(
                f"{output} is the same as {name}, which would be replaced. Choose another output."
            )


def _paths(ctx) -> Iterator[tuple[str, bool, os.stat_result]]:
    """Yields the name of each path that exists, whether it is an output, and its status."""
    for parameter in ctx.command.params:
        is_path = isinstance(parameter.type, click.Path)
        if not is_path and not isinstance(parameter, click.Argument):
            continue
        value = ctx.params.get(parameter.name) or ()
        for path in value if isinstance(value, tuple | list) else [value]:
            with contextlib.suppress(OSError, ValueError):
                status = os.stat(path)
                # SENTENCE and CONFIG may be files; a folder may have the name of a packaged CONFIG.
                if is_path or stat.S_ISREG(status.st_mode):
                    is_output = isinstance(parameter.type, OutputPath)
                    yield _shown(parameter, path, ctx), is_output, status


def _stream(name, descriptor):
    """Returns a list of a stream and its status if it is a regular file, otherwise nothing."""
    with contextlib.suppress(OSError):
        status = os.fstat(descriptor)
        return [(name, status)] * stat.S_ISREG(status.st_mode)
    return []


def _shown(parameter, path, ctx):
    """Returns a path with the name of its option or argument."""
    if isinstance(parameter, click.Option):
        return f"{parameter.opts[-1]} {path}"
    return f"{parameter.make_metavar(ctx) if parameter.nargs == 1 else 'the argument'} {path}"
