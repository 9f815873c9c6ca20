"""An output that is also an input of the command is refused before anything is written."""

import os
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import cli
from keras_transformer.cli.outputs import OutputPath

OUTPUTS = {"--output", "--html", "--markdown"}  # options that name a path to write
WRITING = ("export", "convert", "shortlist")  # commands whose last argument is the path to write


def commands(group, names=()):
    """Yields the words of each command and the command."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        else:
            yield (*names, name), command


@pytest.mark.parametrize("names", [names for names, _ in commands(cli)], ids=" ".join)
def test_every_path_that_a_command_writes_is_declared_as_an_output(names):
    command = dict(commands(cli))[names]
    declared = {one for one in command.params if isinstance(one.type, OutputPath)}
    expected = {one for one in command.params if OUTPUTS & {*one.opts}}
    if names[0] in WRITING:
        arguments = [one for one in command.params if isinstance(one, click.Argument)]
        expected.add(arguments[-1])
    assert declared == expected


@pytest.mark.parametrize(
    "names", [names for names, _ in commands(cli) if names[0] in ("export", "plot", "shortlist")]
)
def test_help_says_that_missing_folders_are_created(names):
    done = CliRunner().invoke(cli, [*names, "--help"])
    assert re.search(r"that do\s+not\s+exist\s+are\s+created\.", done.stdout)


@pytest.mark.parametrize("name", ["predict", "translate"])
def test_help_says_that_the_folder_of_answers_must_exist(name):
    done = CliRunner().invoke(cli, [name, "--help"])
    assert "Its folder must exist." in " ".join(done.stdout.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("in 3 days\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "link.txt").symlink_to("in.txt")
    os.link(tmp_path / "in.txt", tmp_path / "hard.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("spelling", ["in.txt", "other/../in.txt", "link.txt", "hard.txt"])
@pytest.mark.parametrize(
    "command, output, name",
    [
        ("predict m --input in.txt --output {}", "--output {}", "--input in.txt"),
        ("translate m --input {} --output in.txt", "--output in.txt", "--input {}"),
        ("predict m --banned in.txt --output {}", "--output {}", "--banned in.txt"),
        ("predict in.txt --output {}", "--output {}", "the argument in.txt"),
        ("export litert m {} --sentences in.txt", "FILE {}", "--sentences in.txt"),
        ("export ctranslate2 other other", "DIRECTORY other", "RUN other"),
        ("shortlist m {} --source hard.txt --target in.txt", "FILE {}", "--source hard.txt"),
        ("index other --input in.txt --output other/.", "--output other", "MODEL other"),
        ("convert marian in.txt {}", "RUN {}", "MODEL in.txt"),
        ("plot attention in.txt text --html {}", "--html {}", "MODEL in.txt"),
        ("plot attention m {} --output in.txt", "--output in.txt", "SENTENCE {}"),
        (
            "distill c a other --output other/../other",
            "--output other/../other",
            "the argument other",
        ),
    ],
)
def test_an_output_that_is_an_input_is_refused(folder, command, output, name, spelling):
    done = CliRunner().invoke(cli, command.format(spelling).split(), input="")
    text = f"Error: {output} is the same as {name}, which would be replaced."
    assert done.exit_code == 2, done.output
    assert done.stderr == text.format(spelling) + " Choose another output.\n"
    assert (folder / "in.txt").read_text() == "in 3 days\n"


@pytest.mark.parametrize("command", ["train {0} --output {0}", "distill {0} a --output {0}"])
def test_a_run_may_have_the_name_of_a_packaged_configuration(folder, command, monkeypatch):
    """The folder exists when the command is typed again, to resume."""
    (folder / "demo").mkdir()
    called = []
    for name in ("train", "distill"):
        monkeypatch.setattr(cli.commands[name], "callback", lambda **values: called.append(values))
    done = CliRunner().invoke(cli, command.format("demo").split(), input="")
    assert done.stderr == "" and [values["config"] for values in called] == ["demo"]


def predict(folder, redirection):
    command = f"{sys.executable} -m keras_transformer predict nowhere {redirection}"
    return subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=folder, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    "redirection, message",
    [
        ("--output in.txt < link.txt", "--output in.txt is the same as stdin, which"),
        ("--input in.txt >> link.txt", "stdout is the same as --input in.txt, which"),
        ("< in.txt >> link.txt", "stdout is the same as stdin, which"),
    ],
)
def test_a_redirected_stream_is_an_input_or_an_output(folder, redirection, message):
    done = predict(folder, redirection)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {message}") and done.stderr.count("\n") == 1
    assert (folder / "in.txt").read_text() == "in 3 days\n"


@pytest.mark.parametrize("redirection", ["< /dev/null > /dev/null", "--input in.txt > new.txt"])
def test_other_streams_are_accepted(folder, redirection):
    assert "nowhere does not exist" in predict(folder, redirection).stderr


def test_an_existing_file_that_is_no_input_may_be_replaced(folder):
    (folder / "out.txt").write_text("in 3 days\n")  # the same text is not the same file
    done = CliRunner().invoke(cli, ["predict", "m", "--input", "in.txt", "--output", "out.txt"])
    assert "m does not exist" in done.stderr
