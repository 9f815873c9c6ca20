"""A converted checkpoint as a run: what is in it, and what is not there if it fails."""

import json

import numpy as np
import pytest
from opus_folders import CODES, random_tokens, write_folder

from keras_transformer import Run, Translator
from keras_transformer.pretrained.checkpoint import read_checkpoint
from keras_transformer.training import converted
from keras_transformer.training.converted import write_converted
from keras_transformer.training.data.sources import open_source
from keras_transformer.training.loop.start import Start
from keras_transformer.training.settings.toml import load_settings

KINDS = {
    "shared": {"codes": CODES},
    "separate": {"separate": True},
    "untied, with norms": {"tie_word_embeddings": False, "normalize_embedding": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_has_the_model_its_vocabulary_and_its_origin(kind, tmp_path):
    settings, _ = write_folder(tmp_path / "hf", **KINDS[kind])
    checkpoint = read_checkpoint(tmp_path / "hf")
    run = write_converted(checkpoint, tmp_path / "new" / "run")
    translator = Translator.from_run(run.path)
    assert translator.model.config == checkpoint.model.config
    for ours, theirs in zip(translator.model.weights, checkpoint.model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert translator.tokenizers.files() == checkpoint.tokenizers.files()
    assert run.read_origin() == {"format": "opus-mt", "name": "hf", "license": None}
    assert run.read_metrics() == {"parameters": checkpoint.model.count_params()}
    assert sorted(path.name for path in tmp_path.joinpath("new").iterdir()) == ["run"]
    source = random_tokens(settings, [7])
    np.testing.assert_array_equal(
        translator.model.encode(source)[0], checkpoint.model.encode(source)[0]
    )


def test_it_has_no_data_of_its_own_and_is_trained_on_from(tmp_path):
    write_folder(tmp_path / "hf")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    with pytest.raises(ValueError, match=r"this run was converted and has no data of its own"):
        open_source(load_settings(run.config).data)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("a dog\nthe cat\n")
    files = {f"{split}_{side}": name for split in ("train", "validation")
             for side, name in (("source", "a.txt"), ("target", "b.txt"))}  # fmt: skip
    data = "\n".join(f'{key} = "{value}"' for key, value in files.items())
    config = tmp_path / "tune.toml"
    config.write_text(
        '[model]\nstart_from = "run"\ndropout = 0.3\n'
        f'[data]\nsource = "text"\nmax_length = 20\n{data}\n'
    )
    settings = load_settings(config)
    start = Start(settings, load_settings)
    fields = converted.settings_of(start.model.config, start.tokenizers).model
    assert settings.model.model_copy(update={"start_from": None, "dropout": 0.1}) == fields


def test_nothing_is_left_of_a_run_that_could_not_be_written(tmp_path, monkeypatch):
    write_folder(tmp_path / "hf")
    checkpoint = read_checkpoint(tmp_path / "hf")

    def fail(settings, path):
        raise OSError("the disk is full")

    monkeypatch.setattr(converted, "save_settings", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_converted(checkpoint, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_what_is_there_is_not_replaced(tmp_path):
    write_folder(tmp_path / "hf")
    checkpoint = read_checkpoint(tmp_path / "hf")
    with pytest.raises(ValueError, match=r"hf must not exist yet, or be an empty folder\."):
        write_converted(checkpoint, tmp_path / "hf")
    (tmp_path / "empty").mkdir()
    assert write_converted(checkpoint, tmp_path / "empty").model.is_file()


def test_a_damaged_origin_is_named(tmp_path):
    run = Run(tmp_path)
    assert run.read_origin() == {}
    run.write_origin({"license": "MIT"})
    assert json.loads(run.origin.read_text()) == run.read_origin() == {"license": "MIT"}
    run.origin.write_text("{")
    with pytest.raises(ValueError, match=r"origin\.json is damaged"):
        run.read_origin()
