import json
import shlex
import subprocess
import sys
import zipfile

import keras
import pytest
from support import small_config

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.pipelines import Run
from keras_transformer.text.tokenizers import Tokenizer, Tokenizers
from keras_transformer.variants import plain


def test_a_folder_that_is_not_a_run_is_reported(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere is not a finished run: model\.keras is missing"):
        Run(tmp_path / "nowhere").load_model()
    with pytest.raises(ValueError, match=r"tokenizer\.model is missing.*keras-transformer train"):
        Run(tmp_path).load_tokenizers()


def test_the_error_for_an_unfinished_run_states_how_to_continue(tmp_path):
    run = Run(tmp_path / "run")
    run.checkpoints.mkdir(parents=True)
    run.config.write_text("")
    (run.checkpoints / "update-00000007.npz").write_bytes(b"")
    message = (
        f"{run.path} is not a finished run: model.keras is missing. Training is not finished: "
        f"`keras-transformer train {run.config} --output {run.path}` continues it, and "
        f"`keras-transformer average {run.path} --last 1` makes a run from its newest checkpoint.$"
    )
    with pytest.raises(ValueError, match=message):
        run.load_model()


def test_commands_in_errors_are_quoted_for_a_shell(tmp_path):
    run = Run(tmp_path / "läufe/run 9")
    run.checkpoints.mkdir(parents=True)
    run.config.write_text("")
    (run.checkpoints / "update-00000007.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="is not a finished run") as error:
        run.load_model()
    command = str(error.value).split("`")[1]
    assert shlex.split(command)[1:] == ["train", str(run.config), "--output", str(run.path)]


def test_a_lost_vocabulary_of_a_finished_run_is_not_called_unfinished(tmp_path):
    run = Run(tmp_path / "run")
    run.checkpoints.mkdir(parents=True)
    (run.checkpoints / "update-00000007.npz").write_bytes(b"")
    for file in (run.config, run.model):
        file.write_text("")
    message = "tokenizer.model is missing. Put back a copy: the run's exports contain one.$"
    with pytest.raises(ValueError, match=message):
        run.require_finished()


def test_damaged_metrics_are_reported(tmp_path):
    run = Run(tmp_path)
    for content in ("{", "[1]"):
        run.metrics.write_text(content)
        with pytest.raises(ValueError, match=r"metrics\.json is damaged \(.*\): remove it"):
            run.update_metrics(bleu=1.0)


def test_a_model_of_an_earlier_version_is_reported_in_one_line(tmp_path):
    """Its configuration had no parts."""
    model = Transformer(small_config())
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(files["config.json"])
    content["config"]["config"] = plain(model.config.to_flat())
    files["config.json"] = json.dumps(content).encode()
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(
        ValueError, match=r"model\.keras has a configuration from an earlier version"
    ):
        Run(tmp_path).load_model()


def test_a_damaged_model_is_reported(tmp_path):
    run = Run(tmp_path)
    run.model.write_bytes(b"PK\x03\x04 not a model")
    with pytest.raises(ValueError, match=r"model\.keras is damaged: put back a copy of it"):
        run.load_model()
    run.checkpoints.mkdir()
    (run.checkpoints / "update-00000001.npz").touch()
    with pytest.raises(ValueError, match=r"remove it and run `keras-transformer train .*config"):
        run.load_model()


def test_a_foreign_keras_model_is_reported(tmp_path):
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(Run(tmp_path).model)
    with pytest.raises(
        ValueError, match=r"must hold a model of this package\. Received: a Sequential"
    ):
        Run(tmp_path).load_model()
    with pytest.raises(ValueError, match=r"must hold a Transformer\. Received: a Sequential"):
        Run(tmp_path).load_model(Transformer)


class Sized(Tokenizer):
    """A fake vocabulary that only has a size."""

    def __init__(self, size):
        super().__init__()
        self.vocab_size = size

    def files(self):
        return {".model": bytes([self.vocab_size])}


def test_the_vocabulary_of_another_run_is_reported(tmp_path, monkeypatch):
    config = TransformerConfig.preset("tiny", num_layers=1, d_model=8, d_ff=12, vocab_size=11)
    Transformer(config).save(Run(tmp_path).model)
    small, large = Sized(7), Sized(8)
    for pair, files, sizes in (
        ((small, small), r"tokenizer\.model", "7"),
        ((small, large), r"source\.model and \S+target\.model", "7 and 8"),
    ):
        monkeypatch.setattr(Run, "load_tokenizers", lambda run, pair=pair: Tokenizers(*pair))
        message = (
            rf"{files} does not belong to this run: it has {sizes} tokens, but .* was trained with "
            r"11\. Put back the original\."
        )
        with pytest.raises(ValueError, match=message):
            Translator.from_run(tmp_path)


def test_a_model_is_loaded_with_its_weights(tmp_path):
    config = TransformerConfig.preset("tiny", num_layers=1, d_model=8, d_ff=12, vocab_size=11)
    model = Transformer(config)
    model.save(Run(tmp_path).model)
    loaded = Run(tmp_path).load_model()
    assert loaded.config == config
    for mine, theirs in zip(model.weights, loaded.weights, strict=True):
        assert (mine.numpy() == theirs.numpy()).all()


@pytest.mark.long
@pytest.mark.slow
def test_the_command_loads_a_model_although_it_imports_the_layers_late(tmp_path):
    config = TransformerConfig.preset("tiny", num_layers=1, d_model=8, d_ff=12, vocab_size=11)
    Transformer(config).save(Run(tmp_path).model)
    code = (
        "import sys; sys.argv = ['keras-transformer'];"
        "from keras_transformer.tasks.run import Run;"
        f"print(Run({str(tmp_path)!r}).load_model().config.d_model)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "8\n"


def test_metrics_are_added_and_replaced(tmp_path):
    run = Run(tmp_path)
    run.update_metrics(bleu=1.0, parameters=7)
    run.update_metrics(bleu=2.0, chrf=3.0)
    assert json.loads(run.metrics.read_text()) == {"bleu": 2.0, "parameters": 7, "chrf": 3.0}
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]
