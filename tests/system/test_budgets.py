"""Budgets: the places that a new task or kind of input touches, as in docs/architecture.md."""

import subprocess
import sys
import typing
from typing import Literal

import pytest
from documents import blocks
from marks import long

from keras_transformer.tasks import TASKS, pipeline_class_of, register
from keras_transformer.training import Training
from keras_transformer.training.settings.fields import DataSettings
from keras_transformer.training.settings.sources import data_kinds, register_source
from keras_transformer.training.tasks import training_class

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
