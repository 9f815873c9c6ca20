"""Only one training run writes to a folder at a time; a killed one does not block others."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from waiting import until

from keras_transformer import lock as module
from keras_transformer.lock import SILENCE, FolderLock, FolderLocked

HOLDS = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("lock", sys.argv[1])
lock = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lock)
try:
    with lock.FolderLock(sys.argv[2]):
        print("held", flush=True)
        time.sleep(float(sys.argv[3]))
except lock.FolderLocked as error:
    print(error, flush=True)
"""


def start(folder, seconds):
    """Starts a process that takes the lock, without TensorFlow."""
    command = [sys.executable, "-c", HOLDS, module.__file__, str(folder), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def holder(tmp_path):
    process = start(tmp_path, 60)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def sign(folder, silent, **changes):
    """Writes the record of a training run on another machine, `silent` seconds old."""
    record = {"host": "elsewhere", "pid": 17, "since": "1970", "boot": "other", "token": "x"}
    path = folder / "lock.json"
    path.write_text(json.dumps({**record, **changes}))
    then = time.time() - silent
    os.utime(path, (then, then))
    return path


def test_the_second_process_gets_an_error_that_names_the_holder(holder, tmp_path):
    message = (
        f"^{tmp_path} is in use by process {holder.pid} on "
        rf"{socket.gethostname()} since \d{{4}}-\d\d-\d\d \S+. Wait until it ends, stop it, or "
        "choose another folder.$"
    )
    with pytest.raises(FolderLocked, match=message), FolderLock(tmp_path):
        pass
    assert json.loads((tmp_path / "lock.json").read_text())["pid"] == holder.pid


def test_a_killed_process_does_not_block_others(holder, tmp_path):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "lock.json").exists()
    with FolderLock(tmp_path) as lock:
        assert json.loads(lock.record.read_text())["pid"] == os.getpid()
        lock.check()
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_record_is_judged_by_its_age(tmp_path):
    path = tmp_path / "lock.json"
    path.write_text('{"host": "her')
    with pytest.raises(FolderLocked, match="in use by another process. Wait"), FolderLock(tmp_path):
        pass
    os.utime(path, (0, 0))
    with FolderLock(tmp_path):
        pass


def test_another_machine_holds_the_lock_until_it_has_been_silent(tmp_path):
    path = sign(tmp_path, silent=SILENCE - 60)
    message = (
        "process 17 on elsewhere since 1970. .* Its last heartbeat was 12. seconds ago; after "
        "180 seconds without a heartbeat the same command takes over.$"
    )
    for _ in range(2):  # a refusal changes nothing
        with pytest.raises(FolderLocked, match=message), FolderLock(tmp_path):
            pass
    assert json.loads(path.read_text())["token"] == "x"
    sign(tmp_path, silent=SILENCE + 5)
    with FolderLock(tmp_path):
        assert json.loads(path.read_text())["host"] == socket.gethostname()


def test_a_restarted_machine_waits_for_the_silence(tmp_path):
    sign(tmp_path, silent=5, host=socket.gethostname(), pid=os.getpid())
    with pytest.raises(FolderLocked, match="on .* since 1970"), FolderLock(tmp_path):
        pass


@pytest.mark.parametrize("silent", [5, SILENCE + 5])
def test_without_file_system_locks_the_record_decides(tmp_path, monkeypatch, silent):
    """Also between two processes of one machine, one of which was killed."""

    def flock(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(module.fcntl, "flock", flock)
    sign(tmp_path, silent, boot=module._boot())
    if silent > SILENCE:
        with FolderLock(tmp_path) as lock:
            lock.check()
            with pytest.raises(FolderLocked, match=f"process {os.getpid()}"), FolderLock(tmp_path):
                pass
    else:
        with pytest.raises(FolderLocked, match="process 17 on elsewhere"), FolderLock(tmp_path):
            pass


def test_of_two_simultaneous_processes_one_gets_the_lock(tmp_path):
    processes = [start(tmp_path, 60) for _ in range(4)]
    lines = [process.stdout.readline() for process in processes]
    for process in processes:
        process.kill()
        process.communicate()
    assert sorted(text == "held\n" for text in lines) == [False, False, False, True]


def test_heartbeats_continue_and_end(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BEAT", 0.02)
    with FolderLock(tmp_path) as lock:
        os.utime(lock.record, (0, 0))
        assert until(lambda: lock.record.stat().st_mtime > 0)


def test_a_process_that_slept_too_long_gets_an_error_and_keeps_the_new_lock(tmp_path):
    with FolderLock(tmp_path) as lock:
        path = sign(tmp_path, silent=0)
        with pytest.raises(FolderLocked, match="process 17 on elsewhere"):
            lock.check()
        content = path.read_text()
    assert path.read_text() == content


def test_a_folder_that_cannot_be_created_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), FolderLock(tmp_path / "file"):
        pass
