"""Training can start with the weights and the vocabulary of another run."""

import json
import shutil

import numpy as np
import pytest
from pipelines import image_classifier, write_run
from small_runs import run_quietly, write_pairs, write_small_corpus

from keras_transformer.config.rules import OutputRules
from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.generation import Generation
from keras_transformer.tasks.run import Run
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.settings.derived import complete
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.training_run import _claim, train

TUNING = """
[model]
start_from = "../first"
dropout = 0.0

[data]
source = "text"
train_source = "../train.src"
train_target = "../train.tgt"
validation_source = "../validation.src"
validation_target = "../validation.tgt"
max_length = 14
batch_tokens = 60

[schedule]
warmup_steps = 1
peak = 1e-9

[training]
updates = 2
validate_every = 1
validate_sentences = 0
"""


@pytest.fixture(scope="module")
def folder(six_updates, tmp_path_factory):
    """A folder with a finished run, `first`, and a configuration that starts from it."""
    folder = tmp_path_factory.mktemp("start")
    write_small_corpus(folder)
    shutil.copytree(six_updates.run, folder / "first")
    (folder / "configs").mkdir()
    (folder / "configs" / "tuning.toml").write_text(TUNING)
    return folder


def tuning(folder, *overrides):
    return load_settings(folder / "configs" / "tuning.toml", overrides)


@pytest.mark.long
@pytest.mark.slow
def test_training_starts_where_the_other_run_ended(folder, tmp_path):
    first = json.loads(Run(folder / "first").metrics.read_text())
    write_pairs(folder, "new", 30, seed=5)
    new_data = [f'data.train_{side}="{folder}/new.{end}"' for side, end in
                (("source", "src"), ("target", "tgt"))]  # fmt: skip
    settings = tuning(folder, *new_data)
    figures, shown = run_quietly(settings, tmp_path / "second")
    second = Run(tmp_path / "second")
    assert f"Starting with the weights of {folder / 'first'}.\n" in shown
    assert "Learning a vocabulary" not in shown
    assert second.tokenizer.read_bytes() == Run(folder / "first").tokenizer.read_bytes()
    for name, value in first["validation"].items():
        assert figures["validation"][name] == pytest.approx(value, rel=1e-5)
    start = {"run": str(folder / "first"), "model_update": 6}
    assert json.loads(second.metrics.read_text())["started_from"] == start
    assert figures["updates"] == 2 and figures["tokens_seen"] < first["tokens_seen"]
    arrays = dict(np.load(Checkpoints(second.checkpoints).path(2)))
    arrays = {key.split("/", 1)[-1]: value for key, value in arrays.items()}
    for weight in Run(folder / "first").load_model().weights:
        np.testing.assert_allclose(arrays[weight.path], weight.numpy(), atol=1e-7)
    iterations = [value for key, value in arrays.items() if key.endswith("/iteration")]
    assert iterations == [2], "the optimizer is fresh"


def test_settings_that_are_left_out_come_from_the_other_run(folder):
    theirs, ours = load_settings(Run(folder / "first").config), tuning(folder)
    assert ours.model.start_from == str(folder / "first")
    assert ours.model.dropout == 0.0 and theirs.model.dropout == 0.2
    changes = {"dropout": 0.2, "start_from": None}
    assert ours.model.model_copy(update=changes) == theirs.model
    assert ours.vocabulary == theirs.vocabulary
    assert ours.schedule != theirs.schedule
    assert tuning(folder, "model.preset=base").model.num_layers is None


def test_copied_files_are_removed_if_nothing_was_trained(folder, tmp_path):
    run, settings = Run(tmp_path), tuning(folder)
    _claim(run, settings)
    run.write_origin({"license": "MIT"})
    run.write_search(Beam(3))
    run.write_generation(Generation(Greedy(7), rules=OutputRules(banned_ids=(3,))))
    _claim(run, settings)
    assert run.read_origin() and run.read_search() == Beam(3)
    assert run.read_generation() == Generation(Greedy(7), rules=OutputRules(banned_ids=(3,)))
    _claim(run, load_settings(Run(folder / "first").config))
    assert not run.read_origin() and run.read_search() is None and run.read_generation() is None


@pytest.mark.long
@pytest.mark.slow
def test_a_run_is_complete_without_the_run_it_started_from(folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "moved")
    overrides = [f'model.start_from="{moved / "first"}"']
    settings = tuning(folder, *overrides)
    run_quietly(settings, tmp_path / "second")
    shutil.rmtree(moved)
    second = Run(tmp_path / "second")
    loaded = load_settings(second.config)
    assert loaded == complete(settings, loaded)  # it contains the derived numbers
    longer = load_settings(second.config, ["training.updates=3"])
    figures, shown = run_quietly(longer, tmp_path / "second")
    assert "Resuming after update 2 of 3." in shown and "Starting with" not in shown
    assert figures["started_from"]["run"] == str(moved / "first")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.d_ff=25", "first do not fit: model.d_ff is 25 here and 24 there. To use "),
        ("model.norm=pre", "do not fit: model.norm is 'pre' here and 'post' there."),
        ("vocabulary.size=16", "do not fit: vocabulary.size is 16 here and 15 there. To use"),
        ("model.preset=tiny", "num_layers is 4 here and 1 there, model.d_model is 128 here "),
    ],
)
def test_a_mismatch_is_reported_and_nothing_is_trained(folder, tmp_path, override, message):
    with pytest.raises(ValueError, match=message) as error:
        run_quietly(tuning(folder, override), tmp_path / "second")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def deep(folder):
    """The folder, with a run `deep` that has two decoder layers."""
    settings = load_settings(Run(folder / "first").config, ["model.num_decoder_layers=2"])
    train(settings, folder / "deep")
    return folder


def shrunk(deep, *overrides):
    return tuning(deep, f'model.start_from="{deep / "deep"}"', *overrides)


@pytest.mark.long
@pytest.mark.slow
def test_a_smaller_run_begins_with_some_of_the_layers(deep, tmp_path):
    settings = shrunk(deep, "model.num_decoder_layers=1", "model.shrink=true")
    _, shown = run_quietly(settings, tmp_path / "second")
    assert f"Starting with the weights of {deep / 'deep'}, with layer 1 of its decoder.\n" in shown
    ours, theirs = (Run(path).load_model() for path in (tmp_path / "second", deep / "deep"))
    known = {weight.path: weight.numpy() for weight in theirs.weights}
    for weight in ours.weights:  # the learning rate is 1e-9
        np.testing.assert_allclose(weight.numpy(), known[weight.path], atol=1e-6)
    again = load_settings(Run(tmp_path / "second").config)
    assert again.model.shrink and again.model.num_decoder_layers == 1
    third = tuning(deep, f'model.start_from="{tmp_path / "second"}"')
    assert not third.model.shrink and third.model.num_decoder_layers == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.num_decoder_layers=1"], "model.decoder.num_layers is 1 here and 2 there"),
        (["model.shrink=true"], "`model.shrink` has no effect: no stack has fewer layers than in"),
        (["model.shrink=true", "model.num_decoder_layers=3"], "num_layers is 3 here and 2 there"),
        (
            ["model.shrink=true", "model.num_decoder_layers=1", 'model.parts=["encoder"]'],
            "no effect: no stack among `model.parts` has fewer layers than in",
        ),
    ],
)
def test_layers_that_do_not_fit_are_refused(deep, tmp_path, overrides, message):
    with pytest.raises(ValueError, match=message) as error:
        run_quietly(shrunk(deep, *overrides), tmp_path / "second")
    assert "\n" not in str(error.value)
    assert not Run(tmp_path / "second").model.exists()


LOCAL = [
    "model.window={ kind = 'alternating', size = 3, global_every = 2 }",
    *("model.num_layers=3", "model.tie=none"),
]


@pytest.mark.long
@pytest.mark.slow
def test_layers_with_local_attention_are_not_copied_to_others(folder, tmp_path):
    train(load_settings(Run(folder / "first").config, LOCAL), tmp_path / "local")
    start = f'model.start_from="{tmp_path / "local"}"'
    settings = tuning(folder, start, "model.num_layers=2", "model.shrink=true")
    message = r"`model.shrink` would copy layer 3 of the encoder of .*local to layer 2, and only"
    with pytest.raises(ValueError, match=message):
        run_quietly(settings, tmp_path / "second")


def test_shrinking_needs_a_run_to_start_from(folder):
    with pytest.raises(SettingsError, match="`model.shrink` has no effect without"):
        load_settings(Run(folder / "first").config, ["model.shrink=true"])


LABELLED = """
[task]
kind = "classification"

[model]
start_from = "../first"
parts = ["input", "encoder"]
dropout = 0.0
pooling = "max"

[data]
source = "text"
train = "../labelled.tsv"
validation = "../labelled.tsv"
max_length = 14
batch_tokens = 60

[schedule]
warmup_steps = 1
peak = 1e-9

[training]
updates = 1
validate_every = 1
"""


@pytest.fixture(scope="module")
def labelled(folder):
    """A configuration of a classifier that starts with the encoder of the translation model."""
    lines = [f"{number}{number + 1}\t{'odd' if number % 2 else 'even'}" for number in range(8)]
    (folder / "labelled.tsv").write_text("\n".join(lines) + "\n")
    (folder / "configs" / "labelled.toml").write_text(LABELLED)
    return folder / "configs" / "labelled.toml"


@pytest.mark.slow
def test_an_encoder_of_a_translation_model_initialises_a_classifier(folder, labelled, tmp_path):
    settings = load_settings(labelled)
    theirs = load_settings(Run(folder / "first").config)
    assert settings.model.d_ff == theirs.model.d_ff and settings.model.pooling == "max"
    _, shown = run_quietly(settings, tmp_path / "run")
    shown = " ".join(shown.split())
    assert f"Parts copied from {folder / 'first'}: input, encoder. New parts: head." in shown
    model, other = Run(tmp_path / "run").load_model(), Run(folder / "first").load_model()
    names = {"embedding": other.source_embedding, "encoder": other.encoder}
    for name, layer in names.items():
        for ours, theirs in zip(getattr(model, name).weights, layer.weights, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-7)
    assert Run(tmp_path / "run").tokenizer.is_file()
    assert load_settings(Run(tmp_path / "run").config).model.parts == ["input", "encoder"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.num_heads=4", "do not fit: model.num_heads is 4 here and 2 there"),
        ('model.parts=["input", "head"]', "do not fit the part head: the other model"),
        ('model.parts=["body"]', "must be 'input', 'encoder', 'decoder' or 'head'"),
    ],
)
def test_parts_that_do_not_fit_are_reported_in_one_line(labelled, tmp_path, override, message):
    with pytest.raises(ValueError, match=message) as error:
        run_quietly(load_settings(labelled, [override]), tmp_path / "run")
    assert "\n" not in str(error.value)


def test_a_model_of_texts_needs_a_run_with_a_vocabulary(labelled, tmp_path):
    other = write_run(image_classifier(), tmp_path / "images", '[data]\nsource = "none"\n')
    changes = [f'model.start_from="{other}"', 'model.parts=["encoder"]']
    with pytest.raises(ValueError, match=r"must be a run with a vocabulary.*images has none"):
        run_quietly(load_settings(labelled, changes), tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_parts_need_another_run(folder):
    with pytest.raises(
        SettingsError, match="`model.parts` has no effect without `model.start_from"
    ):
        load_settings(Run(folder / "first").config, ['model.parts=["input"]'])


def test_an_unfinished_run_is_reported_in_one_line(folder, tmp_path):
    stopped = shutil.copytree(folder / "first", tmp_path / "stopped")
    (stopped / "model.keras").unlink()
    message = (
        f"{stopped} is not a finished run: model.keras is missing. Training is not finished: "
        f"`keras-transformer train {stopped}/config.toml --output {stopped}` continues it, and "
        f"`keras-transformer average {stopped} --last 1` makes a run from its newest checkpoint."
    )
    with pytest.raises(ValueError, match=message):
        tuning(folder, f'model.start_from="{stopped}"')
    with pytest.raises(ValueError, match=r"nowhere is not a finished run: .* no such folder"):
        tuning(folder, f'model.start_from="{tmp_path}/nowhere"')
    with pytest.raises(
        SettingsError, match="model.start_from .* environment variable NOT_SET_HERE"
    ):
        tuning(folder, "model.start_from=$NOT_SET_HERE/run")


def test_a_run_cannot_start_from_itself(folder):
    settings = tuning(folder)
    with pytest.raises(SettingsError, match=r"model.start_from \(nothing, now .* cannot change"):
        train(settings, folder / "first")


def test_vocabulary_keys_that_are_not_written_come_from_the_other_run(tmp_path):
    """So an error only names keys that the user has written."""
    other = Run(tmp_path / "first")
    other.path.mkdir()
    data = '[data]\nsource = "cldr"\n'
    other.config.write_text(f'{data}[vocabulary]\nsize = 15\nmodel_type = "unigram"\n')
    other.model.touch()
    config = tmp_path / "config.toml"
    start = '[model]\npreset = "tiny"\nstart_from = "first"\n'
    config.write_text(f"{start}{data}[vocabulary]\nsize = 16\n")
    vocabulary = load_settings(config).vocabulary
    assert (vocabulary.size, vocabulary.model_type) == (16, "unigram")
