"""Child processes end with their parent, also if it is killed."""

import subprocess
import sys
import time

import pytest
from waiting import until

from keras_transformer.export import child_process

fcntl = pytest.importorskip("fcntl", reason="locks show whether a process has ended")

# The parent starts a child that locks a file and would run for a minute.
PARENT = "from keras_transformer.export import child_process as c; c.run({})"
CHILD = """
import ctypes, fcntl, sys, time
from keras_transformer.export import child_process
{}
child_process.end_with_parent()
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", file=file, flush=True)
{}
"""
SLEEP = "time.sleep(60)"
HOLD = "ctypes.PyDLL(None).sleep(60)"  # as C++ code does that holds Python's lock
WITHOUT_PRCTL = "child_process.sys.platform = 'another'"


def is_locked(path):
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize(
    ("change", "work"),
    [
        (WITHOUT_PRCTL, SLEEP),
        pytest.param(
            "", HOLD, marks=pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
        ),
    ],
    ids=["by the end of stdin", "by the system"],
)
def test_a_child_ends_when_its_parent_is_killed(change, work, tmp_path):
    file = tmp_path / "lock"
    command = [sys.executable, "-c", CHILD.format(change, work), str(file)]
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(command)])
    try:
        assert until(lambda: file.exists() and file.read_text())
        time.sleep(0.1)
        assert is_locked(file), "the child runs as long as its parent"
    finally:
        parent.kill()
        parent.wait()
    assert until(lambda: not is_locked(file))


def test_the_result_of_a_child_is_returned():
    code = (
        "print('a'); print('b', file=sys.stderr); sys.exit(len(select.select([0], [], [], 0)[0]))"
    )
    done = child_process.run([sys.executable, "-c", f"import select, sys; {code}"])
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\n", b"b\n"), "stdin is open"
    done = child_process.run([sys.executable, "-c", "raise SystemExit(7)"])
    assert done.returncode == 7
