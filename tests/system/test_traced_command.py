"""The files that one command walks through, traced with `sys.setprofile`."""

import json
import pathlib
import subprocess
import sys

import pytest
from pipelines import translator, write_run

from keras_transformer.tasks import TASKS

SIZE = 23  # of the beam; no other number of the model and the sentence is equal
MOST_FILES = 80  # about 40 are layers, models, configurations and values: a file for each concept
MOST_WITH_BEAM = 9
MOST_WITH_SIZE = 18  # with those where the number of hypotheses is an axis of tensors


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    run = write_run(translator(), folder / "run")
    program = pathlib.Path(__file__).with_name("traced_command.py")
    arguments = [folder / "result.json", SIZE, "translate", run, "--beam", SIZE]
    done = subprocess.run(
        [sys.executable, program, *map(str, arguments)],
        input="dog\n",
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1, done.stderr
    return json.loads((folder / "result.json").read_text())


@pytest.mark.slow
@pytest.mark.long
def test_few_files_translate_a_sentence(files):
    assert "keras_transformer/decoding/beam.py" in files["executed"]
    assert len(files["executed"]) <= MOST_FILES, files["executed"]
    assert not [name for name in files["executed"] if name.startswith(("training/", "export/"))]


@pytest.mark.slow
@pytest.mark.long
def test_no_module_of_another_task_is_imported(files):
    parts = [name.split(".") for name in files["modules"]]
    tasks = {name[2] for name in parts if name[1:2] == ["tasks"] and len(name) > 2}
    assert "translation" in tasks and not tasks & {*TASKS} - {"translation"}
    models = {name[2] for name in parts if name[1:2] == ["models"] and len(name) > 2}
    others = {"classifier", "embedder", "language_model", "span_predictor", "speech_transformer"}
    assert "transformer" in models and not models & others


@pytest.mark.slow
@pytest.mark.long
def test_few_files_hold_the_beam(files):
    """The `Beam` travels whole; its size is a number where tensors are made."""
    assert {"keras_transformer/decoding/beam.py"} < {*files["beams"]}
    assert len(files["beams"]) <= MOST_WITH_BEAM, files["beams"]
    assert len({*files["beams"], *files["sizes"]}) <= MOST_WITH_SIZE, files["sizes"]
