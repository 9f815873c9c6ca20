"""Pages of `--help`: options grouped by use, then one example."""

import functools
from collections.abc import Callable
from typing import Any

import click


class Option(click.Option):
    """An option that `--help` lists under the heading `group`, with its default if it has one.

    Args:
        *declarations: See `click.Option`.
        group: The heading. `None`: the option is listed last, under a general heading.
        **attributes: See `click.Option`.
    """

    def __init__(self, *declarations, group=None, **attributes):
        shown = attributes.get("default") is not None
        super().__init__(*declarations, **{"show_default": shown, **attributes})
        self.group = group


option = functools.partial(click.option, cls=Option)


def count(name, default, help, metavar="N", least=1, group=None) -> Callable[[Any], Any]:
    """Returns an option whose value is an integer of at least `least`."""
    kind = click.IntRange(least)
    return option(name, type=kind, default=default, metavar=metavar, group=group, help=help)


def add_options(command, *options) -> Any:
    """Adds options, which are decorators, to a command; `--help` lists them in this order."""
    return functools.reduce(lambda command, add: add(command), reversed(options), command)


class _Example(click.Command):
    """Base of commands whose `--help` ends with an example.

    Args:
        *arguments: See `click.Command`.
        example: Lines of a shell. `None`: the page has no example.
        **attributes: See `click.Command`.
    """

    def __init__(self, *arguments, example=None, **attributes):
        super().__init__(*arguments, **attributes)
        self.example = example

    def format_epilog(self, ctx, formatter):  # noqa: D102
        if self.example is None:
            return
        with formatter.section("Example"):
            for line in self.example.splitlines():  # as it is: shells do not take wrapped lines
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class GroupedCommand(_Example):
    """A command whose `--help` lists the options by group."""

    def format_options(self, ctx, formatter) -> None:  # noqa: D102
        groups = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:  # arguments have one too
                groups.setdefault(getattr(parameter, "group", None), []).append(record)
        others = groups.pop(None)  # `--help` at least
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)
        with formatter.section("Other options" if groups else "Options"):
            formatter.write_dl(others)


class Group(_Example, click.Group):
    """A group of commands."""
