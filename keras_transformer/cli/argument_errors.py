"""Errors of the library about values that the command line has set, in words of the command line.

The library names arguments as Python does: "`d_model` must be even. Received: d_model=7."
"""

import contextlib
import re
from collections.abc import Generator

import click
from click.core import ParameterSource

OF_AN_ARGUMENT = re.compile(r"`(?P<name>\w+)` ")


@contextlib.contextmanager
def naming_options(ctx) -> Generator[None]:
    """Replaces an error that begins with an argument by a usage error that names the options.

    Args:
        ctx: The `click.Context` of the running command. Values that it did not get from the user,
            such as those of a file, keep their errors.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        match = OF_AN_ARGUMENT.match(str(error))
        given = [
            parameter
            for parameter in ctx.command.params
            if ctx.get_parameter_source(parameter.name) == ParameterSource.COMMANDLINE
        ]
        names = {_argument(parameter): _shown(parameter, ctx) for parameter in given}
        if not match or match["name"] not in names:
            raise
        names = {_argument(one): _shown(one, ctx) for one in ctx.command.params} | names
        text = re.sub(r"`(\w+)`", lambda word: names.get(word[1], word[0]), str(error))
        text = re.sub(
            r"\b(\w+)=", lambda word: f"{names[word[1]]} " if word[1] in names else word[0], text
        )
        raise click.UsageError(text) from error


def _argument(parameter):
    """Returns the name that the library has for the value of an option or argument."""
    return getattr(parameter, "argument", parameter.name)


def _shown(parameter, ctx):
    """Returns an option or argument as `--help` names it."""
    is_option = isinstance(parameter, click.Option)
    return parameter.opts[-1] if is_option else parameter.make_metavar(ctx).strip("[]")
