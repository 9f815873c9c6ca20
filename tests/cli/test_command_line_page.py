"""The page on the command line has every command, option and variable, and equals the commands."""

import pathlib
import re
import runpy

import click
import pytest

from keras_transformer.cli.main import cli

ROOT = pathlib.Path(__file__).parents[2]
GENERATOR = runpy.run_path(str(ROOT / ".ci" / "command_line.py"))
PAGE = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
# Passed on to child processes; the commands do not depend on them.
OF_OTHERS = {
    "PYTHONPATH",
    "PATH",
    "SYSTEMROOT",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
}


def test_the_page_equals_the_commands():
    assert GENERATOR["page"]() == PAGE, "run `make docs`"


def leaves(group, *names):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *names, name)
        else:
            yield " ".join([*names, name]), command


@pytest.mark.parametrize(("name", "command"), [*leaves(cli)], ids=lambda value: str(value)[:30])
def test_the_page_has_every_option_of_a_command(name, command):
    if command.name != name.split()[-1]:
        assert f"| `{name}` | Another name of {command.name}. |" in PAGE
        return
    part = PAGE.split(f"\n### keras-transformer {name}\n")[1].split("\n### ")[0].split("\n## ")[0]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert f"`{parameter.opts[-1]}" in part, parameter.name
    for line in command.example.splitlines():
        assert f"\n{line}\n" in part


def test_an_option_of_several_commands_is_explained_once():
    for text in ("exponent A of the length penalty", "Python module to import first"):
        assert PAGE.count(text) == 1


def test_the_page_has_every_environment_variable():
    names = set()
    for folder in ("keras_transformer", "training", "export"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            if "environ" in text:
                names |= {*re.findall(r"environ\W+(?:get|setdefault)?\W*\"([A-Z_0-9]+)\"", text)}
                names |= {*re.findall(r"\"([A-Z_0-9]+)\" in os\.environ", text)}
                names |= {*re.findall(r"^KEY = \"(\w+)\"", text, re.MULTILINE)}
                forced = re.findall(r"^FORCED = \((.*)\)", text, re.MULTILINE)
                names |= {*re.findall(r"\"(\w+)\"", "".join(forced))}
    assert {"TF_CONFIG", "TPU_NAME", "KERAS_TRANSFORMER_API_KEY", "XLA_FLAGS"} < names
    for name in names - OF_OTHERS:
        assert f"`{name}`" in PAGE.partition("## Commands")[0], name
