"""Budgets: the places that a new task, kind of input or mixer touches."""

import os
import pathlib
import re
import subprocess
import sys
import typing
from typing import Literal

import pytest
from documents import blocks
from marks import long
from mixer_rows import MIXERS
from support import with_tests_on_path

from keras_transformer.mixers import Mixer
from keras_transformer.tasks import TASKS, pipeline_class_of, register
from keras_transformer.training import Training
from keras_transformer.training.settings.fields import DataSettings
from keras_transformer.training.settings.sources import data_kinds, register_source
from keras_transformer.training.tasks import training_class

ROOT = pathlib.Path(__file__).parents[2]
# The output at the end of each example. A block contains all its code and registrations.
RESULTS = {
    "new_task": 'print(sorted({*answers} | {"even", "odd"}), 0 <= accuracy <= 100)',
    "new_input": "print(corpus.size, corpus.truncated > 0, losses[-1] < losses[0])",
}
SHOWN = {"new_task": "['even', 'odd'] True", "new_input": "64 True True"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [long("new_task"), "new_input"])
def test_a_new_task_and_a_new_input_train(name, tmp_path):
    """Each runs in a process of its own, so that only the block itself registers them."""
    (block,) = [b for b in blocks("docs/architecture.md", "python") if b.needs == name]
    (tmp_path / "example.py").write_text(f"{block.code}{RESULTS[name]}\n")
    command = [sys.executable, "example.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == SHOWN[name]


@pytest.mark.parametrize("name", TASKS)
def test_a_task_declares_its_training(name):
    """One line in `TASKS`; everything else is in the task's package and in its `Training`."""
    assert TASKS[name].name == name
    kind = training_class(TASKS[name])
    assert issubclass(kind, Training)
    columns = TASKS[name].columns
    assert len({*columns}) == len(columns) > 0
    assert {column for texts in TASKS[name].texts.values() for column in texts} <= {*columns}


def test_a_model_without_a_task_is_refused():
    with pytest.raises(ValueError, match="`model_class` must be that of a task. Received: dict."):
        pipeline_class_of(dict)


def test_two_tasks_do_not_share_a_name():
    register(TASKS["translation"])  # registering again is allowed
    other = type("Other", (type(TASKS["token_classification"]),), {"name": "translation"})()
    with pytest.raises(ValueError, match="must have a unique name. Received: 'translation'"):
        register(other)


@pytest.mark.parametrize("name", data_kinds())
def test_a_kind_of_data_is_one_section(name):
    """One line in a table; the section has the settings and opens the source."""
    kind = data_kinds()[name]
    assert typing.get_args(kind.model_fields["source"].annotation) == (name,)
    assert kind.open is not DataSettings.open


def test_two_kinds_of_data_do_not_share_a_name():
    register_source(data_kinds()["text"])  # registering again is allowed
    other = type("Other", (data_kinds()["text"],), {"__doc__": "Texts."})
    with pytest.raises(ValueError, match="must have a unique name. Received: 'text'"):
        register_source(other)
    with pytest.raises(TypeError, match="must be a subclass of `DataSettings` whose key `source`"):
        register_source(DataSettings)
    number = type("Number", (DataSettings,), {"__annotations__": {"source": Literal[5]}})
    with pytest.raises(TypeError, match="must be a subclass of `DataSettings` whose key `source`"):
        register_source(number)
    bare = type("Bare", (DataSettings,), {"__annotations__": {"source": Literal["bare"]}})
    with pytest.raises(TypeError, match="must have a `size_of_batch`, as a `TokenData` has"):
        register_source(bare)


# Prints the lists of mixers that do not have the one more.
LISTS = """
import pathlib, runpy
import running_mean_row
from keras_transformer.config import StackConfig
from keras_transformer.training.settings.pages import as_pages

made = runpy.run_path(str(pathlib.Path.cwd() / ".ci" / "mixer_lists.py"))
lists = {name: made["written"](name) for name in made["LISTS"]}
lists["settings"] = as_pages()["settings/model.md"]
lists["help"] = StackConfig.from_flat(mixer="running_mean").options()["mixer"].metadata["help"]
print(len(lists), [name for name, text in lists.items() if "running_mean" not in text])
"""


@pytest.fixture
def with_one_more():
    """The environment of a process in which the package and its tests have one more mixer."""
    path = [str(ROOT / "tests" / "outside" / "one_more_mixer"), with_tests_on_path()["PYTHONPATH"]]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def test_a_mixer_is_listed_wherever_mixers_are(with_one_more):
    """The stub, the pages, the settings and the help texts need nothing but its file."""
    command = [sys.executable, "-c", LISTS]
    done = subprocess.run(command, cwd=ROOT, env=with_one_more, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "5 []\n"


@pytest.mark.long
@pytest.mark.slow
def test_a_mixer_is_tested_by_its_row(with_one_more):
    """Against its reference, in a search, and in the ways in which Keras runs a layer."""
    names = ("layers/test_mixers.py", "decoding/test_cached_kinds.py", "conformance")
    chosen = ["-k", "running_mean and not backends", "-m", "not long", "-p", "running_mean_row"]
    without = ["-p", "no:xdist", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *chosen, *without]
    command += [f"tests/{name}" for name in names]
    done = subprocess.run(command, cwd=ROOT, env=with_one_more, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) > 20


def test_every_mixer_has_a_row_and_no_other_file_names_it():
    """Except for mixers that a file format, a preset or the model of a task has as well."""
    kinds = Mixer.kinds()
    assert {*MIXERS} == {*Mixer.described_kinds()} - {"self_attention"}
    folders = ("keras_transformer", "training", "export", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    for name in {*MIXERS} - {"gru", "lstm", "ssru"}:
        either = re.compile(rf"\b({name}|{kinds[name].__name__})\b")
        users = [path for path in files if either.search(path.read_text("utf-8"))]
        assert users == [ROOT.joinpath(*kinds[name].__module__.split(".")).with_suffix(".py")]
