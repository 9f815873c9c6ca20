"""`demo.sh`, whose commands are replaced by a program that records its arguments."""

import json
import os
import pathlib
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
RECORD = """#!/bin/sh
cat > /dev/null
printf '%s\\0' "$@" >> "$RECORD"
printf '\\n' >> "$RECORD"
[ "$1" != "$FAILS" ]
"""


def demo(folder, fails="none"):
    """Runs the demo in folders whose names need quotes; returns process, calls and the command."""
    program, record = folder / "it's a/command", folder / "record"
    program.parent.mkdir()
    program.write_text(RECORD)
    program.chmod(0o755)
    run = folder / "läufe/run 9"
    names = {"COMMAND": program, "RUN": run, "RECORD": record, "FAILS": fails}
    done = subprocess.run(
        ["sh", ROOT / "demo.sh"], env={**os.environ, **{k: str(v) for k, v in names.items()}},
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    lines = record.read_text("utf-8").split("\0\n")[:-1]
    return done, [line.split("\0") for line in lines], str(program), str(run)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no sh")
def test_every_command_is_shown_as_it_can_be_typed(tmp_path):
    done, calls, program, run = demo(tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    shown = [shlex.split(line[2:]) for line in done.stdout.split("\n") if line.startswith("$ ")]
    without_files = [words[: words.index("<")] if "<" in words else words for words in shown]
    assert without_files == [[program, *call] for call in calls] and len(calls) == 8
    (last,) = (line for line in done.stdout.split("\n") if "translate" in line and "| " in line)
    assert shlex.split(last)[3:] == [program, "translate", run], json.dumps(last)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no sh")
def test_the_demo_ends_with_the_first_command_that_fails(tmp_path):
    done, calls, *_ = demo(tmp_path, fails="evaluate")
    assert done.returncode and [call[0] for call in calls] == ["train", "evaluate"]
    assert "Everything is in" not in done.stdout
