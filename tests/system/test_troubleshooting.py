"""The messages explained in docs/troubleshooting.md are those that the programs print."""

import pathlib
import re
import shlex

import pytest
from click.testing import CliRunner
from documents import ROOT, blocks, read

import keras_transformer.training
from keras_transformer.cli.main import cli

PAGE = "docs/troubleshooting.md"
# The parts of a message that page and code share, between the parts that vary.
MESSAGES = [
    " is not a setting",
    " needs the environment variable ",
    "`d_model` must be divisible by `num_heads`",
    "must have the same number of lines, since line n of one belongs to line n of the other.",
    "was started with other settings: ",
    " cannot change when a run resumes.",
    " does not exist: a model is a run or an export.",
    " holds only the weights of a run: name the run's folder",
    ", and only tensors are read from a pickle",
    "must contain nothing but named tensors",
    " must be one of ",
    " must end in ",
    "`beam_size` must be from 1 to ",
]


def messages():
    """Returns the code of the package, with strings of several lines joined."""
    folders = ("keras_transformer", "training", "export")
    files = [path for name in folders for path in sorted((ROOT / name).rglob("*.py"))]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text("utf-8") for path in files))


@pytest.fixture(scope="module")
def code():
    return messages()


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_on_the_page_is_in_the_code(message, code):
    assert message in read(PAGE), "not on the page"
    assert message in code, f"no program prints this any more: {message}"


def test_the_mistake_on_the_page_gives_the_message_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = next(iter(blocks(PAGE, "sh")))
    _, *words = shlex.split(first.code)
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 1
    # The page shows a checkout; an installed package has the file elsewhere.
    folder = f"{pathlib.Path(keras_transformer.training.__file__).parent}/"
    assert done.output.replace(folder, "training/") == first.output


def test_every_quoted_message_is_compared():
    """Messages in bold at the start of a paragraph, except those of pip and the shell."""
    quoted = re.findall(r"^\*\*(`.*?)\*\*", read(PAGE), re.MULTILINE)
    foreign = ("No matching distribution", "icudt77_dat", "ImportError", "command not found")
    ours = [text for text in quoted if not any(word in text for word in foreign)]
    assert len(ours) > 5
    for text in ours:
        assert any(message.strip() in text for message in MESSAGES), text
