"""The destination of an export: refused before the work, or written completely.

No other file stays.
"""

import errno
import os
import pathlib
import signal
import types

import pytest
import tensorflow as tf
from support import listing
from threads import in_threads

from keras_transformer.export import place as staging
from keras_transformer.export import place_checks
from keras_transformer.export.errors import ExportError
from keras_transformer.files import draft_of

NAMES = {"model.bin"}
CHECKS = {
    "file": lambda path: place_checks.check_place_of_file(path / "x.tflite"),
    "versions": lambda path: place_checks.check_place_of_versions(path),
    "folder": lambda path: place_checks.check_place_of_folder(path, NAMES),
}


def kill(kind, place):
    """Kills a process when its draft is half written or the older export is moved aside."""

    def write(draft):
        if kind == "file":
            draft.write_bytes(b"half")
        else:
            (draft / "variables").mkdir()
            (draft / "variables" / "half").write_bytes(b"of it")
        if kind != "swap":
            os.kill(os.getpid(), signal.SIGKILL)

    def rename_and_die(source, target, rename=os.rename):
        rename(source, target)
        os.kill(os.getpid(), signal.SIGKILL)

    process = os.fork()
    if process == 0:
        try:
            os.rename = rename_and_die
            place_it = {"file": staging.place_file, "versions": staging.place_version}
            place_it.get(kind, staging.place_folder)(place, write)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL


def write_file(draft):
    draft.write_bytes(b"0000TFL3")


def write_folder(draft):
    (draft / "model.bin").write_bytes(b"new")


@pytest.mark.parametrize("kind", CHECKS)
def test_a_writable_place_is_left_unchanged(tmp_path, kind):
    for place in (tmp_path, tmp_path / "new" / "place"):
        CHECKS[kind](place)
    assert listing(tmp_path) == []


@pytest.mark.parametrize("kind", CHECKS)
def test_a_place_below_a_file_is_refused(tmp_path, kind):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot be written: .* in .*file \(Not a directory\)"):
        CHECKS[kind](tmp_path / "file" / "deeper" / "x")


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
def test_a_read_only_place_is_refused(tmp_path, monkeypatch, kind, number):
    """Simulated, because tests may run as root, who can write to any folder."""

    def refuse(path, *args, **kwargs):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(pathlib.Path, "mkdir", refuse)
    message = rf"new.* cannot be written: .* \({os.strerror(number)}\). Choose another path."
    with pytest.raises(OSError, match=message) as caught:
        CHECKS[kind](tmp_path / "new" / "x")
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == []


@pytest.mark.parametrize("kind", CHECKS)
def test_a_file_system_that_cannot_create_folders_is_refused(kind):
    if not pathlib.Path("/proc/self").exists():
        pytest.skip("there is no /proc")
    with pytest.raises(OSError, match="/proc/x.* cannot be written: no file can be .* in /proc"):
        CHECKS[kind](pathlib.Path("/proc/x/y"))


@pytest.mark.parametrize("quantize, needed", [("none", "4.0"), ("float16", "2.0"), ("int8", "1.0")])
def test_a_disk_without_space_for_the_weights_is_refused(tmp_path, monkeypatch, quantize, needed):
    model = types.SimpleNamespace(count_params=lambda: 1_000_000)
    translator = types.SimpleNamespace(model=model)
    place_checks.check_space(tmp_path / "new" / "x", translator, quantize)
    usage = types.SimpleNamespace(free=500_000)
    monkeypatch.setattr(place_checks.shutil, "disk_usage", lambda path: usage)
    message = f"x cannot be written: the model needs {needed} MB, but only 0.5 MB are free"
    with pytest.raises(OSError, match=message):
        place_checks.check_space(tmp_path / "new" / "x", translator, quantize)


def test_remains_of_a_killed_export_of_versions_are_removed_by_the_next(tmp_path):
    kill("versions", tmp_path / "new")
    assert len(listing(tmp_path)) == 4
    place_checks.check_place_of_versions(tmp_path / "new")
    staging.place_version(tmp_path / "new", write_folder)
    assert listing(tmp_path) == ["new", "new/1", "new/1/model.bin"]


def test_remains_of_a_killed_export_of_a_file_are_removed_by_the_next(tmp_path):
    kill("file", tmp_path / "x.tflite")
    assert len(listing(tmp_path)) == 1
    staging.place_file(tmp_path / "other.tflite", write_file)
    assert listing(tmp_path) == ["other.tflite"]


@pytest.mark.parametrize("name", ["model", "model.v1"])
def test_remains_of_a_killed_export_of_a_folder_are_removed_by_the_next(tmp_path, name):
    kill("folder", tmp_path / name)
    assert len(listing(tmp_path)) == 3
    place_checks.check_place_of_folder(tmp_path / name, NAMES)
    staging.place_folder(tmp_path / name, write_folder)
    assert listing(tmp_path) == [name, f"{name}/model.bin"]


@pytest.mark.parametrize("name", ["model", "model.v1"])
def test_an_older_export_that_a_killed_one_moved_aside_is_restored(tmp_path, name):
    """Between two renamings neither the old nor the new export is in place."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "model.bin").write_bytes(b"old")
    kill("swap", tmp_path / name)
    assert not (tmp_path / name).exists()

    def fail(draft):
        assert (tmp_path / name / "model.bin").read_bytes() == b"old"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        staging.place_folder(tmp_path / name, fail)
    assert listing(tmp_path) == [name, f"{name}/model.bin"]
    staging.place_folder(tmp_path / name, write_folder)
    assert (tmp_path / name / "model.bin").read_bytes() == b"new"
    assert listing(tmp_path) == [name, f"{name}/model.bin"]


def test_an_older_export_is_replaced_even_if_its_temporary_name_is_taken(tmp_path):
    for name in ("model", ".model.old", ".model.0a1b2c3d.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.bin").write_bytes(b"old")
    staging.place_folder(tmp_path / "model", write_folder)
    assert (tmp_path / "model" / "model.bin").read_bytes() == b"new"


def test_concurrent_exports_leave_each_others_drafts(tmp_path):
    def write(draft):
        write_folder(draft)
        staging.place_version(tmp_path, write_folder)

    staging.place_version(tmp_path, write)
    names = ["1", "1/model.bin", "2", "2/model.bin"]
    assert listing(tmp_path) == names


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("when", ["old is moved aside", "old was moved aside", "both"])
def test_of_two_exports_to_one_folder_the_last_one_stays(tmp_path, monkeypatch, existing, when):
    """Another process puts its export there between any two steps of this one."""
    place, rename, number = tmp_path / "model", os.rename, 0
    if existing:
        staging.place_folder(place, write_folder)

    def other():
        monkeypatch.setattr(os, "rename", rename)
        staging.place_folder(place, lambda draft: (draft / "model.bin").write_bytes(b"other"))
        monkeypatch.setattr(os, "rename", interrupted)

    def interrupted(source, target):
        nonlocal number
        number += 1
        if number <= 2 and when in (
            ("old is moved aside", "old was moved aside")[number - 1],
            "both",
        ):
            other()
        rename(source, target)

    monkeypatch.setattr(os, "rename", interrupted)
    staging.place_folder(place, write_folder)
    assert number > 1 and listing(tmp_path) == ["model", "model/model.bin"]
    assert (place / "model.bin").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["file", "versions", "folder"])
def test_exports_at_the_same_time_to_one_place_are_whole(tmp_path, kind):
    def write(draft, name):
        if kind == "file":
            return draft.write_bytes(name.encode() * 1000)
        (draft / "variables").mkdir()
        for file in ("model.bin", "variables/data"):
            (draft / file).write_bytes(name.encode() * 1000)

    place = tmp_path / ("x.tflite" if kind == "file" else "model")
    place_it = {
        "file": staging.place_file,
        "versions": staging.place_version,
        "folder": staging.place_folder,
    }[kind]
    names = "abcdefgh"
    in_threads(lambda name: place_it(place, lambda draft: write(draft, name)), names)
    if kind == "file":
        assert listing(tmp_path) == ["x.tflite"]
        assert place.read_bytes() in [name.encode() * 1000 for name in names]
        return
    folders = [place] if kind == "folder" else [place / str(n + 1) for n in range(len(names))]
    contents = []
    for folder in folders:
        assert listing(folder) == ["model.bin", "variables", "variables/data"]
        both = {(folder / file).read_bytes() for file in ("model.bin", "variables/data")}
        contents.append(both.pop()[:1].decode())
        assert not both, "one export wrote into the other"
    assert len(listing(tmp_path)) == 1 + (4 * 8 if kind == "versions" else 3)
    assert {*contents} <= {*names} and len({*contents}) == len(folders)


def test_an_unrelated_numbered_folder_keeps_its_number(tmp_path):
    for path in ("2/saved_model.pb", "3/notes.txt"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).touch()
    path, _ = staging.place_version(tmp_path, write_folder)
    assert path == tmp_path / "4" and (tmp_path / "3" / "notes.txt").exists()


def test_an_unfinished_draft_of_another_destination_stays(tmp_path):
    other = draft_of(tmp_path / "other")
    other.mkdir()
    staging.place_folder(tmp_path / "model", write_folder)
    assert sorted(os.listdir(tmp_path)) == sorted([other.name, "model"])


def test_a_folder_with_other_files_is_still_refused(tmp_path):
    (tmp_path / "chapter.txt").touch()
    for kind in ("versions", "folder"):
        with pytest.raises(ExportError, match="contains something other"):
            CHECKS[kind](tmp_path)


def test_the_error_of_a_full_disk_is_one_line(tmp_path, monkeypatch):
    """The error names the folder; TensorFlow's message has a function, a part and an operation."""

    def full(*args, **kwargs):
        message = "{{function}} x/part-0; No space left on device [Op:SaveV2]\nmore"
        raise tf.errors.ResourceExhaustedError(None, None, message)

    monkeypatch.setattr(tf.saved_model, "save", full)
    with pytest.raises(OSError) as caught:
        staging.save(None, tmp_path / "model", {})
    assert str(caught.value) == f"{tmp_path} cannot be written to: No space left on device"
