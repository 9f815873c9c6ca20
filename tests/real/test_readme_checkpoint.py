"""The README's program and commands for a published model, read from a folder."""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

import pytest
from documents import blocks, read, run
from packages import MINILM

pytestmark = pytest.mark.real

NAME = "sentence-transformers/all-MiniLM-L6-v2"


def replaced(language):
    """Returns the README's only block for a published model, which then needs nothing."""
    (block,) = [b for b in blocks("README.md", language) if b.needs == "published"]
    assert NAME in block.code
    folder = str(MINILM.folder())
    return dataclasses.replace(block, code=block.code.replace(NAME, folder), needs=None)


def test_the_program_prints_what_the_page_shows():
    block = replaced("python")
    assert block.output
    run([block])


def test_the_commands_write_a_file_of_the_stated_size(tmp_path):
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    command = ["sh", "-ec", replaced("sh").code]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (stated,) = re.findall(r"`minilm.tflite` has (\d+) MB", read("README.md"))
    assert round((tmp_path / "minilm.tflite").stat().st_size / 1e6) == int(stated)
