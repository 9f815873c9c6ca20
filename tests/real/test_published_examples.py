"""The examples that use published checkpoints as they are."""

import os
import pathlib
import re
import subprocess
import sys

import ctranslate2_file
import pytest
from packages import MINILM, RECORDINGS, WHISPER

pytestmark = [pytest.mark.real, pytest.mark.long]

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def figures(name, **environment):
    """Runs an example, and returns what it prints as `title: number`, and all of it."""
    environment = {**os.environ, "MPLBACKEND": "Agg", **environment}
    environment.pop("DISPLAY", None)
    command = [sys.executable, "-W", "error::UserWarning", EXAMPLES / f"{name}.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = re.findall(r"^(.+): ([\d.]+)$", done.stdout, re.MULTILINE)
    return {title: float(number) for title, number in lines}, done.stdout


def test_notes_are_found_by_their_meaning():
    results, printed = figures("search_notes", CHECKPOINT=str(MINILM.folder()))
    for model in ("Checkpoint", "File in int8"):
        assert results[f"{model}, among the first ten"] > 0.45
        assert results[f"{model}, right note first"] > 0.19
    assert results["Words in common, among the first ten"] < 0.4
    assert "threading.join: Wait until the thread terminates." in printed
    assert "TensorFlow or Keras imported: False" in printed


def test_recordings_are_transcribed(tmp_path):
    ctranslate2_file.write_hugging_face(WHISPER.folder(), tmp_path)
    recordings = str(RECORDINGS.folder() / "librivox")
    results, printed = figures("transcription", CHECKPOINT=str(tmp_path), RECORDINGS=recordings)
    for model in ("Checkpoint", "File in int8"):
        assert results[f"{model}, word error rate"] < 0.08
    assert "He might even have been made amiable himself." in printed
