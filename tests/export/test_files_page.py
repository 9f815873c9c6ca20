"""The page on files names every file of a run and of each export, and no others."""

import fnmatch
import pathlib
import re
import zipfile

import pytest
from documents import prose
from marian_models import sentences
from small_runs import run_quietly, write_small_corpus

from keras_transformer.export import export_ctranslate2, export_marian
from keras_transformer.export.marian.export import FILES
from keras_transformer.export.saved_model import metadata
from keras_transformer.tasks.run import Run
from keras_transformer.training.settings.toml import load_settings


def named(heading):
    """Returns the names of files and folders in the tables below a heading."""
    text = prose("docs/files.md").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def files(folder):
    """Returns the paths of all files in a folder, relative to it."""
    paths = pathlib.Path(folder).rglob("*")
    return {path.relative_to(folder).as_posix() for path in paths if path.is_file()}


def unnamed(paths, names):
    """Returns the paths that are neither one of the names nor in one of the folders."""
    folders = tuple(name for name in names if name.endswith("/"))
    return {
        path
        for path in paths
        if not path.startswith(folders) and not any(fnmatch.fnmatch(path, name) for name in names)
    }


def test_the_page_names_all_files_that_a_run_may_have():
    run = Run("run")
    paths = [path for path in vars(run).values() if isinstance(path, pathlib.Path)]
    names = {path.name for path in paths if path != run.path}
    assert names <= {name.rstrip("/") for name in named("A run")}


def test_the_page_names_all_files_that_an_export_may_have():
    of_version = named("A SavedModel")
    for name in (metadata.PATH, metadata.ORIGIN, metadata.README, metadata.SEARCH, metadata.CODEC):
        assert name in of_version
    assert f"{metadata.VOCABULARY}/" in of_version
    assert {*FILES} == named("A folder for Marian")


@pytest.mark.slow
def test_a_run_has_the_files_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small_corpus(tmp_path)
    run_quietly(load_settings(tmp_path / "config.toml"), tmp_path / "run", draws=True)
    names, found = named("A run"), files(tmp_path / "run")
    assert not unnamed(found, names)
    always = {"config.toml", "model.keras", "tokenizer.model", "history.csv", "curve.png"}
    assert always | {"metrics.json"} <= found
    assert {path.partition("/")[0] for path in found} >= {"checkpoints", "logs", "store"}
    assert any(fnmatch.fnmatch(path, "checkpoints/update-*.npz") for path in found)


@pytest.mark.slow
def test_exports_have_the_files_on_the_page(serving, export, translator, tmp_path):
    found = files(serving[0] / "1")
    assert not unnamed(found, named("A SavedModel"))
    assert {"saved_model.pb", "README.md", "batching_parameters.txt"} <= found
    assert not {path for path in found if path.startswith("assets/")}
    with zipfile.ZipFile(export("none")[0]) as archive:
        assert not unnamed(archive.namelist(), named("A .tflite file"))
    pytest.importorskip("ctranslate2")
    export_ctranslate2(translator, tmp_path / "ct2", ["in 17 weeks", "after 12 hours"])
    assert not unnamed(files(tmp_path / "ct2"), named("A folder for CTranslate2"))


@pytest.mark.slow
def test_a_folder_for_marian_has_the_files_on_the_page(tmp_path):
    from test_marian import translator as student

    export_marian(student(d_model=64, d_ff=64), tmp_path / "marian", sentences(9))
    assert not unnamed(files(tmp_path / "marian"), named("A folder for Marian"))
