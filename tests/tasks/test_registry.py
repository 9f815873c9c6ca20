"""The table of tasks, which are imported when they are first looked up."""

import sys
import time

import pytest
from threads import THREADS, in_threads

from keras_transformer.registry import Registry

MODULE = """
import threading
from threads import THREADS

class Slow:
    everybody = threading.Barrier(THREADS)

    def __init__(self):
        self.everybody.wait(120)  # all threads make one before the first of them stores it
"""


class SlowTable(dict):
    """A dictionary that other threads can read while an item is stored."""

    def __setitem__(self, name, task):
        time.sleep(0.01)
        super().__setitem__(name, task)


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    package = tmp_path / "package_of_tasks"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "slow.py").write_text(MODULE)
    (package / "broken.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    made = Registry(package.name, {"slow": "slow:Slow", "broken": "broken:Task"})
    made._objects = SlowTable(made._objects)
    yield made
    for name in [name for name in sys.modules if name.startswith(package.name)]:
        del sys.modules[name]


def test_threads_that_look_up_a_task_at_the_same_time_get_one_object(tasks):
    found = in_threads(lambda _: tasks["slow"], range(THREADS))
    assert {*map(id, found)} == {id(tasks["slow"])}


def test_names_are_known_without_an_import(tasks):
    assert [*tasks] == ["slow", "broken"] and len(tasks) == 2
    assert "slow" in tasks and "other" not in tasks
    assert not any(name.startswith("package_of_tasks.") for name in sys.modules)
    with pytest.raises(KeyError, match="other"):
        tasks["other"]


def test_a_task_whose_import_fails_can_be_looked_up_again(tasks):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            tasks["broken"]
    tasks["own"] = own = object()
    assert tasks["own"] is own
    del tasks["own"]
    assert "own" not in tasks
