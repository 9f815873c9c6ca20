"""The pages of `--help`: each option has a text, in a group, and each example is a command."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import cli


def commands(group, *names):
    """All commands and groups of commands, by their names on the command line."""
    yield names, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *names, name)


COMMANDS = {" ".join(names): command for names, command in commands(cli)}


def page(name):
    return CliRunner().invoke(cli, [*name.split(), "--help"], terminal_width=80).stdout


def sections(name):
    """The headings of a page, each with the options below it."""
    found = {}
    for line in page(name).splitlines():
        if re.fullmatch(r"[A-Z].*:", line):
            options = found.setdefault(line[:-1], [])
        elif option := re.match(r"  (?:-h, )?(--[\w-]+)", line):
            options.append(option[1])
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_that_starts_like_a_sentence(name):
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert re.match("[A-Z].*", parameter.help or ""), parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_lists_every_option_once_and_ends_with_an_example(name):
    listed = [option for options in sections(name).values() for option in options]
    params = [param for param in COMMANDS[name].params if isinstance(param, click.Option)]
    assert sorted(listed) == sorted([*(param.opts[-1] for param in params), "--help"])
    assert list(sections(name))[-1] == "Example"
    *_, example = page(name).partition("\nExample:\n")
    assert example and max(map(len, example.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_is_a_command(name):
    for line in COMMANDS[name].example.replace("\\\n", "").splitlines():
        words = shlex.split(line.rpartition("| ")[2].partition(" < ")[0])
        assert words.pop(0) == "keras-transformer"
        command = cli
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        assert command is COMMANDS[name] or isinstance(COMMANDS[name], click.Group)
        values, rest, _ = command.make_parser(click.Context(command)).parse_args(words)
        assert not rest
        for param in command.params:
            assert not param.required or values.get(param.name)


def test_options_are_grouped_by_use():
    assert list(sections("translate")) == [
        *(
            "Input and output",
            "Words of the outputs",
            "Languages",
            "Answers",
            "Documents",
            "Search",
            "Sampling",
            "Sizes",
            "Other options",
        ),
        "Example",
    ]
    assert sections("translate")["Sampling"] == [
        *("--sample", "--temperature", "--top-k", "--top-p", "--seed", "--min-p")
    ]
    assert list(sections("export litert")) == [
        *("Search", "Words of the outputs", "Quantisation"),
        "Quality limits of a quantised model",
        *("Contents of the file", "Shapes", "Check of the export", "Other options"),
        "Example",
    ]
    assert list(sections("average")) == ["Options", "Example"]
