"""A task outside the package, in its own folder: head, model, pipeline, training and data."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

OUTSIDE = pathlib.Path(__file__).parents[1] / "outside"
CONFIG = """
task = { kind = "tally" }
data = { source = "letters", letter = "b" }
model = { num_layers = 1, d_model = 16, num_heads = 2, d_ff = 32, factor = 2.0 }
training = { updates = 20, validate_every = 10 }
"""
TEXTS = "a b\nb b c\nd\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with the package `tally` and a run that was trained with it."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(OUTSIDE / "tally", folder / "tally")
    (folder / "tally.toml").write_text(CONFIG)
    command(folder, "train", "tally.toml", "--output", "run", "--module", "tally.task")
    return folder


def command(folder, *arguments, texts="", site=""):
    """Returns what a command of a process of its own writes."""
    done = subprocess.run(
        [sys.executable, "-m", "keras_transformer", *arguments],
        cwd=folder,
        input=texts,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": site},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_a_head_with_its_task_is_a_folder_outside(folder):
    """It is trained, opened in new processes and exported, and nothing else knows of it."""
    module = "--module", "tally.task"
    answers = command(folder, "predict", "run", *module, texts=TEXTS).split()
    assert len({*answers}) == 3 and all(map(float, answers))
    command(folder, "export", "saved-model", "run", "exported", *module)
    exported = command(folder, "predict", "exported", *module, texts=TEXTS).split()
    assert [float(text) for text in exported] == pytest.approx([*map(float, answers)], abs=2e-3)


@pytest.mark.slow
@pytest.mark.long
def test_an_installed_package_adds_a_task_and_data(folder):
    """Its entry point is enough: the run is opened and its data are read without `--module`."""
    info = folder / "site" / "tally-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tally\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[keras_transformer]\ntally = tally.task\n")
    shutil.move(folder / "tally", folder / "site" / "tally")
    output = command(folder, "evaluate", "run", "--split", "test", site=str(folder / "site"))
    assert 0 < json.loads(output)["mean_error"] < 6
