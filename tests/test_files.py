"""Files are complete or absent, and drafts of killed processes do not stay."""

import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from keras_transformer import files as atomic
from keras_transformer.cli.places import new_folder
from keras_transformer.files import (
    draft_of,
    json_text,
    remove_stale_drafts,
    replacing,
    write_bytes,
    write_text,
)

# Writes half of a file and half of a folder, prints a line, and waits to be killed.
WRITER = """
import importlib.util, pathlib, sys, time
spec = importlib.util.spec_from_file_location("atomic", sys.argv[2])  # without TensorFlow
spec.loader.exec_module(atomic := importlib.util.module_from_spec(spec))
draft_of, replacing = atomic.draft_of, atomic.replacing
folder = pathlib.Path(sys.argv[1])
draft_of(folder / "model").mkdir()
with replacing(folder / "a.b.npz") as temporary:
    temporary.write_bytes(b"half")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writer(tmp_path):
    """A process in the middle of its work."""
    command = [sys.executable, "-c", WRITER, tmp_path, atomic.__file__]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def age(path, seconds):
    when = time.time() - seconds
    os.utime(path, (when, when))


def test_a_file_is_written_with_its_suffix_and_no_draft_stays(tmp_path):
    with replacing(tmp_path / "model.v1.keras") as temporary:
        assert temporary.parent == tmp_path and temporary.suffix == ".keras"
        temporary.write_text("whole")
    assert names(tmp_path) == ["model.v1.keras"]


def test_an_error_keeps_the_existing_file(tmp_path):
    write_text(tmp_path / "x.json", "old")
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "x.json") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert names(tmp_path) == ["x.json"] and (tmp_path / "x.json").read_text() == "old"


def test_a_full_disk_is_reported_with_the_file(tmp_path, full_disk):
    """The message names neither the draft nor a file that the block itself reads."""
    path = tmp_path / "model.bin"
    with pytest.raises(OSError, match=re.escape(f"File too large: '{path}'")), full_disk(10):
        write_bytes(path, bytes(99))
    with pytest.raises(FileNotFoundError, match="nowhere"), replacing(path):
        (tmp_path / "nowhere").read_bytes()
    assert not any(tmp_path.iterdir())


def test_drafts_of_a_running_process_stay_and_those_of_a_killed_one_go(tmp_path, writer):
    drafts = names(tmp_path)
    assert len(drafts) == 2
    write_text(tmp_path / "other.txt", "whole")
    assert names(tmp_path) == [*drafts, "other.txt"]
    writer.send_signal(signal.SIGKILL)
    while atomic._start(writer.pid) >= 0 and writer.poll() is None:
        time.sleep(0.01)
    write_text(tmp_path / "other.txt", "again")  # any later write removes them
    assert names(tmp_path) == ["other.txt"]


def test_a_zombie_process_does_not_count_as_running(tmp_path, writer):
    if not atomic._start(writer.pid):
        pytest.skip("the system does not tell what state a process is in")
    os.kill(writer.pid, signal.SIGKILL)
    os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    remove_stale_drafts(tmp_path)
    assert names(tmp_path) == []


def test_another_process_with_a_reused_number_is_not_the_same(tmp_path, monkeypatch):
    draft = draft_of(tmp_path / "x")
    draft.touch()
    remove_stale_drafts(tmp_path)
    assert names(tmp_path) == [draft.name]
    start = atomic._start(os.getpid())
    if not start:
        pytest.skip("the system does not tell when a process began")
    draft.rename(tmp_path / draft.name.replace(f"-{start}-", f"-{start - 1}-"))
    remove_stale_drafts(tmp_path)
    assert names(tmp_path) == []


def test_if_the_start_time_is_unknown_the_number_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_start", lambda process: 0)
    running, gone = draft_of(tmp_path / "x"), draft_of(tmp_path / "y")
    process = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1)
    gone = tmp_path / gone.name.replace(f"-{os.getpid()}-", f"-{int(process.stdout)}-")
    for path in (running, gone, tmp_path / gone.name.replace(f"{int(process.stdout)}", "9" * 10)):
        path.touch()
    remove_stale_drafts(tmp_path)
    assert names(tmp_path) == [running.name]


def test_a_process_of_another_user_counts_as_running(tmp_path, monkeypatch):
    def refuse(process, number):
        raise PermissionError

    draft_of(tmp_path / "x").touch()
    monkeypatch.setattr(atomic.os, "kill", refuse)
    remove_stale_drafts(tmp_path)
    assert len(names(tmp_path)) == 1


def test_drafts_of_another_machine_stay_for_a_day_after_their_last_change(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_machine", lambda: "0badcafe")
    drafts = [draft_of(tmp_path / name) for name in ("file.npz", "folder", "busy")]
    drafts[0].touch()
    for folder in drafts[1:]:
        (folder / "variables").mkdir(parents=True)
        (folder / "variables" / "half").touch()
    monkeypatch.undo()
    remove_stale_drafts(tmp_path)
    assert len(names(tmp_path)) == 3
    for path in tmp_path.rglob("*"):
        age(path, 25 * 60 * 60)
    age(drafts[2] / "variables" / "half", 60 * 60)
    remove_stale_drafts(tmp_path)
    assert names(tmp_path) == [drafts[2].name]


def test_nothing_else_is_removed(tmp_path):
    others = [".hidden", ".x.draft-1", "x.draft-0badcafe-1-1-0badcafe", ".update-00000002.4711.npz"]
    for name in others:
        (tmp_path / name).touch()
        age(tmp_path / name, 10**8)
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").touch()
    (tmp_path / ".link.draft-0badcafe-9-9-0badcafe").symlink_to(target)
    os.utime(tmp_path / ".link.draft-0badcafe-9-9-0badcafe", (0, 0), follow_symlinks=False)
    age(target / "mine", 10**8)
    remove_stale_drafts(tmp_path)
    assert names(tmp_path) == sorted([*others, "target"]) and names(target) == ["mine"]


def test_a_missing_folder_has_no_drafts(tmp_path):
    remove_stale_drafts(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    remove_stale_drafts(tmp_path / "file")
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["ENOSPC", "ECONNREFUSED"])
def test_a_full_disk_is_reported_with_the_folder_and_nothing_is_left(tmp_path, name):
    number = getattr(errno, name)
    run = new_folder(tmp_path / "above" / "run", worth_keeping=lambda folder: False)
    with pytest.raises(OSError, match=re.escape(os.strerror(number))) as error, run:
        raise OSError(number, os.strerror(number))
    full = name == "ENOSPC"
    assert error.value.filename == (str(tmp_path / "above" / "run") if full else None)
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_json_lacks_are_null():
    fields = {"a": [math.inf, 1.5, {"b": math.nan}], "c": (-math.inf, "ü", True, None, 3)}

    def refuse(name):
        raise ValueError(name)  # Python's own reader accepts Infinity and NaN

    read = json.loads(json_text(fields), parse_constant=refuse)
    assert read == {"a": [None, 1.5, {"b": None}], "c": [None, "ü", True, None, 3]}
    assert json_text([math.inf], indent=None) == "[null]"
