"""Pages of `--help`: options grouped by use, notes, then examples."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import click

from keras_transformer.cli.numbers import LimitedNumber


class Option(click.Option):
    """An option that `--help` lists under the heading `group`, with its default if it has one.

    Args:
        *declarations: See `click.Option`.
        group: The heading. `None`: the option is listed last, under a general heading.
        argument: Name of the argument that gets the value in Python. `None`: that of the option.
        **attributes: See `click.Option`.
    """

    def __init__(self, *declarations, group=None, argument=None, **attributes):
        shown = attributes.get("default") is not None
        super().__init__(*declarations, **{"show_default": shown, **attributes})
        self.group = group
        self.argument = argument or self.name

    def get_help_extra(self, ctx) -> Any:
        """Returns what stands in brackets after the help text, with the limits of a number."""
        extra = super().get_help_extra(ctx)
        if limits := getattr(self.type, "limits", ""):
            extra["range"] = limits
        return extra

    def get_help_record(self, ctx) -> tuple[str, str] | None:
        """Returns the option and its help text with one pair of brackets at the end."""
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].replace("]  [", "; "))


option = functools.partial(click.option, cls=Option)


def count(name, default, help, metavar="N", least=1, group=None) -> Callable[[Any], Any]:
    """Returns an option whose value is an integer of at least `least`."""
    kind = LimitedNumber(int, least)
    return option(name, type=kind, default=default, metavar=metavar, group=group, help=help)


def add_options(command, *options) -> Any:
    """Adds options, which are decorators, to a command; `--help` lists them in this order."""
    return functools.reduce(lambda command, add: add(command), reversed(options), command)


class _Page(click.Command):
    """Base of commands whose `--help` ends with examples.

    Args:
        *arguments: See `click.Command`.
        example: Lines of a shell, one command or several; a line that begins with `#` says what the
            next command is for. `None`: the page has no example.
        notes: Function that returns further sections of the page: a dictionary from a heading to
            pairs of a term and its explanation. `None`: there are none.
        **attributes: See `click.Command`.
    """

    def __init__(self, *arguments, example=None, notes=None, **attributes):
        super().__init__(*arguments, **attributes)
        self.example, self.notes = example, notes or dict

    def get_short_help_str(self, limit=0) -> str:
        """Returns the first paragraph of the help text, which is never cut: lists wrap it."""
        return " ".join((self.short_help or self.help or "").split("\n\n")[0].split())

    def format_epilog(self, ctx, formatter):  # noqa: D102
        for heading, rows in self.notes().items():
            with formatter.section(heading):
                formatter.write_dl(rows)
        if self.example is None:
            return
        lines = self.example.splitlines()
        several = sum(line.startswith("#") for line in lines) > 0
        with formatter.section("Examples" if several else "Example"):
            for line in lines:  # as it is: shells do not take wrapped lines
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class GroupedCommand(_Page):
    """A command whose `--help` lists the options by group."""

    def format_options(self, ctx, formatter) -> None:  # noqa: D102
        groups = self.options_by_group(ctx)
        others = groups.pop(None)  # `--help` at least
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)
        with formatter.section("Other options" if groups else "Options"):
            formatter.write_dl(others)

    def options_by_group(self, ctx) -> dict[str | None, list[tuple[str, str]]]:
        """Returns the options, as pairs of their names and help, by the heading of their group."""
        groups = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:  # arguments have one too
                groups.setdefault(getattr(parameter, "group", None), []).append(record)
        return groups


class Group(_Page, click.Group):
    """A group of commands.

    Args:
        *arguments: See `click.Group`.
        sections: Dictionary from headings of `--help` to the names of the commands below them, in
            the order of the page. Commands that it does not name come last.
        **attributes: See `click.Group`.
    """

    def __init__(self, *arguments, sections: Mapping[str, tuple[str, ...]] = {}, **attributes):
        super().__init__(*arguments, **attributes)
        self.sections = sections

    def list_commands(self, ctx) -> list[str]:
        """Returns the names of the commands in the order of the page."""
        return [name for names in self.commands_by_section().values() for name in names]

    def commands_by_section(self) -> dict[str, list[str]]:
        """Returns the names of the commands by heading."""
        named = {name for names in self.sections.values() for name in names}
        others = [name for name in self.commands if name not in named]
        listed = {
            heading: [name for name in names if name in self.commands]
            for heading, names in self.sections.items()
        }
        return {**listed, "Other commands" if listed else "Commands": others}

    def format_commands(self, ctx, formatter) -> None:  # noqa: D102
        width = max(map(len, self.commands), default=0)
        for heading, names in self.commands_by_section().items():
            rows = [(name.ljust(width), self.about(name)) for name in names]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def about(self, name) -> str:
        """Returns the line of a command in the list; a second name of it refers to the first."""
        command = self.commands[name]
        if command.name != name:
            return f"Another name of {command.name}."
        return command.get_short_help_str()
