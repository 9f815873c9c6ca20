"""A start of training builds the configuration of its model once, and reads each file once."""

import collections
import contextlib
import shutil
import sys
from unittest import mock

import pytest
from small_runs import CONFIG, run_quietly

from keras_transformer.config import ModelConfig
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.toml import load_settings

READ = collections.Counter()
LISTENERS = []


def _listen(event, arguments):
    if event == "open" and LISTENERS and arguments[1] == "r":
        READ[str(arguments[0])] += 1


sys.addaudithook(_listen)  # cannot be removed; it counts only inside `counted`


@contextlib.contextmanager
def counted():
    """Provides a list of the ways in which configurations are made, and counts reads of files."""
    built = []

    def initialise(self, **options):
        if not built or built[-1] in ("built", "completed"):
            built.append("loaded")  # neither by `preset` nor by `with_data`
        built[-1] = built[-1].removeprefix("to be ")
        init(self, **options)

    def build(cls, name, **changes):
        built.append("to be built")
        return preset(cls, name, **changes)

    def complete(self, **data):
        built.append("to be completed")
        return with_data(self, **data)

    preset, with_data = ModelConfig.preset.__func__, ModelConfig.with_data
    init = ModelConfig.__init__
    READ.clear()
    LISTENERS.append(built)
    with (
        mock.patch.object(ModelConfig, "preset", classmethod(build)),
        mock.patch.object(ModelConfig, "with_data", complete),
        mock.patch.object(ModelConfig, "__init__", initialise),
    ):
        yield built
    LISTENERS.remove(built)


def read(path):
    return READ[str(path)]


@pytest.mark.long
@pytest.mark.slow
def test_a_first_start_builds_the_configuration_once(six_updates, tmp_path):
    file = six_updates.corpus / "config.toml"
    with counted() as built:
        settings = load_settings(file, ["training.updates=1"])
        run_quietly(settings, tmp_path / "run")
    assert built == ["built", "completed"]
    assert (read(file), read(tmp_path / "run" / "config.toml")) == (1, 0)


@pytest.mark.slow
def test_a_run_that_resumes_shares_the_configuration_with_its_earlier_settings(
    six_updates, tmp_path
):
    run = shutil.copytree(six_updates.run, tmp_path / "run")
    file = six_updates.corpus / "config.toml"
    overrides = ["training.updates=7", "training.keep_checkpoints=9"]
    with counted() as built:
        _, shown = run_quietly(load_settings(file, overrides), run)
    assert "Resuming with changed settings: training.updates from 6 to 7." in shown
    assert built == ["built", "completed"]
    # Once more when the run is locked: until then another process may have trained it.
    assert (read(file), read(run / "config.toml")) == (1, 2)


@pytest.mark.slow
def test_a_finished_run_is_recognised_with_one_build(six_updates):
    file = six_updates.corpus / "config.toml"
    with counted() as built:
        settings = load_settings(file, ["training.updates=6", "training.keep_checkpoints=9"])
        _, shown = run_quietly(settings, six_updates.run)
    assert "is finished: all 6 updates are done" in shown
    assert built == ["built"]
    assert (read(file), read(six_updates.run / "config.toml")) == (1, 1)


@pytest.mark.long
@pytest.mark.slow
def test_a_start_from_another_run_builds_its_own_configuration_once(six_updates, tmp_path):
    parent = six_updates.run / "config.toml"
    text = CONFIG.replace('preset = "tiny"', f'start_from = "{six_updates.run}"')
    file = tmp_path / "config.toml"
    file.write_text(text.replace('= "train.', f'= "{six_updates.corpus}/train.').replace(
        '= "validation.', f'= "{six_updates.corpus}/validation.'))  # fmt: skip
    with counted() as built:
        settings = load_settings(file, ["training.updates=1"])
        assert built == ["built", "built"], "the settings of the other run, and these"
        run_quietly(settings, tmp_path / "run")
    assert built == ["built", "built", "loaded", "completed"], (
        "the model of the other run is loaded"
    )
    assert (read(file), read(tmp_path / "run" / "config.toml")) == (1, 0)
    # Once for the settings, once for the weights: between them the other run may have changed.
    assert read(parent) == 2


# Values of what the data determine, which differ from the defaults.
DATA = {
    "vocab_size": 17, "pad_id": 1, "bos_id": 4, "eos_id": 5, "target_vocab_size": 19,
    "labels": ("O", "B-A", "I-A", "B-C"), "image_height": 32, "image_width": 64, "channels": 1,
    "inputs": ("a", "b"), "input_mean": (1.0, 2.0), "input_scale": (3.0, 4.0), "target": "c",
    "target_mean": 5.0, "target_scale": 6.0, "scored": 7, "max_length": 8,
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(TASKS))
def test_a_configuration_completed_with_data_equals_one_built_with_them(kind):
    task = TASKS[kind]
    model = {"num_layers": 2, "norm": "pre", "attention_dropout": 0.2}
    options = task.config_class.options()
    follow = {"max_length"} if kind == "time_series" else set()  # which its data determine
    data = {key: DATA[key] for key in DATA
            if key in follow or key in options and options[key].metadata["set_by"]}  # fmt: skip
    if "target_vocab_size" in data:
        model["tie"] = "none"
    if not data:
        assert kind == "arithmetic"  # its symbols are always the same
        return
    config = task.config_class.preset("tiny", **model)
    built = task.config_class.preset("tiny", **model, **data)
    assert config.with_data(**data) == built != config


def test_an_image_may_have_another_number_of_patches_than_the_default():
    config = TASKS["image_classification"].config_class(patch_size=8)
    small = config.with_data(image_height=32, image_width=16)
    assert (config.max_length, small.max_length) == (1 + 28 * 28, 1 + 4 * 2)


def test_what_the_data_determine_is_checked():
    settings = load_settings("demo")
    with pytest.raises(ValueError, match="`pad_id`, `bos_id` and `eos_id` must be in the vocab"):
        settings.config(vocab_size=9, pad_id=9)
    with pytest.raises(ValueError, match=r"`TransformerConfig` has the fields .*: labels\.$"):
        settings.config(labels=("a", "b"))


def test_settings_keep_their_configuration_unless_their_model_changes():
    settings = Settings.model_validate({"data": {"source": "cldr"}, "model": {"d_ff": 64}})
    config = settings.config()
    shorter = settings.training.model_copy(update={"updates": 5})
    assert settings.config() is config
    assert settings.model_copy(update={"training": shorter}).config() is config
    wider = settings.model_copy(update={"model": settings.model.model_copy(update={"d_ff": 65})})
    assert wider.config().encoder.block.d_ff == 65 and config.encoder.block.d_ff == 64
    assert settings == Settings.model_validate({"data": {"source": "cldr"}, "model": {"d_ff": 64}})


def test_a_configuration_is_shared_only_by_settings_of_the_same_model():
    def made(like=None, **model):
        values = {"data": {"source": "cldr"}, "model": {"d_ff": 64, **model}}
        return Settings.model_validate(values, context=like)

    settings = made()
    assert made(settings).config() is settings.config()
    for other in (made(settings, norm="pre"), made(settings, preset="base"),
                  made(settings, normalization={"kind": "layer", "epsilon": 1e-3})):  # fmt: skip
        assert other.config() is not settings.config() != other.config()
    values = {"task": {"kind": "language_modelling"}, "data": {"source": "none"}}
    other = Settings.model_validate({**values, "model": {"d_ff": 64}}, context=settings)
    assert other.config() is not settings.config()
