"""Hints: the next command if a run is expected and something else is given."""

import pytest

from keras_transformer import from_pretrained
from keras_transformer import open as open_model
from keras_transformer.checkpoint_hints import hint
from keras_transformer.pipelines import Run
from keras_transformer.pretrained import hub

NAME = "Helsinki-NLP/opus-mt-en-de"
DOWNLOAD = f"`hf download {NAME} --local-dir opus-mt-en-de` downloads it"
CONVERT = "`keras-transformer convert hf {} RUN` converts it to a run."


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin.index.json"])
def test_the_hint_for_a_hugging_face_folder_is_to_convert_it(weights, tmp_path):
    assert hint(tmp_path) == ""
    (tmp_path / "config.json").touch()
    assert hint(tmp_path) == ""  # such a file may also be in the folder of an export
    (tmp_path / weights).touch()
    assert hint(tmp_path) == f" It is a checkpoint: {CONVERT.format(tmp_path)}"
    with pytest.raises(ValueError, match="is not a finished run: .* It is a checkpoint: `keras-"):
        Run(tmp_path).load_model()


def test_the_hint_for_a_repository_name_is_to_download_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "LIBRARY", "no_such_library")  # which would download it
    both = f"`keras-transformer convert hf {NAME} RUN` downloads it and converts it to a run."
    assert hint(NAME) == f" If it is the name of a Hugging Face repository, {both}"
    with pytest.raises(ValueError, match="must be a folder with a checkpoint") as error:
        from_pretrained(NAME)
    assert str(error.value).endswith(f"{DOWNLOAD}.") and "\n" not in str(error.value)
    for path in ("nowhere", "runs/demo", "/a/b", "a/b/c", "../b", str(tmp_path / "none")):
        assert hint(path) == "", path
    (tmp_path / "Helsinki-NLP").mkdir()
    assert hint(NAME) == ""


def test_a_name_of_the_hub_without_its_owner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = (
        "There is no such folder. To download .* hub, name its owner: OWNER/bert-base-uncased\\.$"
    )
    with pytest.raises(ValueError, match=message):
        from_pretrained("bert-base-uncased")
    with pytest.raises(ValueError, match=r"There is no such folder\.$"):
        from_pretrained("a/b/bert-base-uncased")


def test_a_path_without_a_model_gets_the_commands_that_write_one(tmp_path):
    message = (
        "does not exist: a model is a run or an export. `keras-transformer train`, `convert` and"
    )
    with pytest.raises(ValueError, match=message):
        open_model(tmp_path / "missing")


@pytest.mark.parametrize(
    "names", [["a.tflite"], ["a/saved_model.pb"], ["a/model.bin", "a/config.json"]]
)
def test_an_export_in_place_of_a_run(names, tmp_path):
    (tmp_path / "a").mkdir()
    for name in names:
        (tmp_path / name).touch()
    path = tmp_path / ("a.tflite" if names == ["a.tflite"] else "a")
    with pytest.raises(ValueError, match="not a finished run: .* It is an export, which `keras-"):
        Run(path).load_model()


def test_a_marian_file_and_a_run_are_distinguished(tmp_path):
    file = tmp_path / "model.npz"
    file.touch()
    assert f"`keras-transformer convert marian {file} RUN` converts it to a run." in hint(file)
    (tmp_path / "config.toml").touch()
    with pytest.raises(ValueError, match="is not a checkpoint.* It is a run: open"):
        from_pretrained(tmp_path)
