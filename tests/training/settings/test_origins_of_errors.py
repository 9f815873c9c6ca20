"""Errors in settings name the file or the option of the command that has to change."""

import pytest

from keras_transformer.training.settings.toml import SettingsError, load_settings

DEMO = '[data]\nsource = "cldr"\n'


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.toml").write_text(DEMO)
    return tmp_path / "mine.toml"


def refused(path, overrides=()):
    with pytest.raises(SettingsError) as error:
        load_settings(path, overrides)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.num_head=3", "--set model.num_head=3: model.num_head is not a setting of a model "
         "for translation; did you mean num_heads? Valid"),
        (" model.num_heads = x", "--set  model.num_heads = x: model.num_heads must be a valid int"),
        ("model.decoder.num_head=3", "--set model.decoder.num_head=3: model.decoder.num_head is "),
        ("modl.num_heads=3", "--set modl.num_heads=3: [modl] is not a section; did you mean model"),
        ("data.source=clrd", "--set data.source=clrd: data.source must be one of "),
        ("data.exampels=3", "--set data.exampels=3: data.exampels is not a setting; did you"),
        ("model.decoder=3", "--set model.decoder=3: model.decoder must be a table, "
         "[model.decoder]. Received: 3."),
    ],
)  # fmt: skip
def test_an_override_is_named(file, override, message):
    assert refused(file, ["training.seed=2", override]).startswith(message)


def test_a_key_may_contain_a_full_stop(file):
    file.write_text(DEMO + '[model]\n"num.heads" = 3\n')
    assert refused(file).startswith(f"{file}: model.num.heads is not a setting of a model")


def test_the_last_of_two_overrides_is_named(file):
    assert refused(file, ["model.d_k=x", "model.d_k=y"]).startswith("--set model.d_k=y: ")


def test_a_rule_between_keys_names_the_overrides_of_these_keys(file):
    message = refused(file, ["training.seed=2", "model.num_heads=3"])
    assert message.startswith("--set model.num_heads=3: [model] `d_model` must be div")
    message = refused(file, ["schedule.scale=2.0", "schedule.peak=0.1"])
    assert message.startswith("--set schedule.scale=2.0 --set schedule.peak=0.1: [")
    message = refused(file, ["model.d_model=130", "model.num_heads=3"])
    assert message.startswith("--set model.d_model=130 --set model.num_heads=3: [mo")


def test_a_rule_between_keys_of_the_file_names_the_file(file):
    file.write_text(DEMO + "[model]\nd_model = 128\nnum_heads = 3\n")
    assert refused(file, ["training.seed=2"]).startswith(f"{file}: [model] `d_model` must be div")


def test_a_value_that_names_a_missing_run_is_blamed_on_its_override(file):
    message = refused(file, ["training.seed=200", "model.start_from=nowhere/run"])
    assert message.startswith("--set model.start_from=nowhere/run: ") and "nowhere/run" in message
    file.write_text(DEMO + '[model]\nstart_from = "nowhere/run"\n')
    assert refused(file, ["training.seed=200"]).startswith(f"{file}: ")


def test_a_key_of_the_file_is_not_blamed_on_an_override(file):
    file.write_text(DEMO + "[model]\nnum_head = 3\n")
    assert refused(file, ["model.num_heads=2"]).startswith(f"{file}: model.num_head is not a")


@pytest.mark.parametrize("trained", ["model.keras", "checkpoints/update-00000002.npz"])
def test_the_settings_of_an_older_run_are_recognised(tmp_path, trained):
    path = tmp_path / "run" / "config.toml"
    (path.parent / "checkpoints").mkdir(parents=True)
    path.write_text(DEMO + "cut_source = false\n")
    assert refused(path).startswith(f"{path}: data.cut_source is not a setting; did you mean")
    (path.parent / trained).touch()
    assert refused(path) == (
        f"{path}: the run is from an earlier version, with data.cut_source, which is not a setting "
        "of this one: train the model again, or convert its checkpoint again."
    )
    path.write_text('[data]\nsource = "tfds"\n')
    assert "from an earlier version, without data.name: train" in refused(path)
    path.write_text(DEMO)
    assert refused(path, ["data.cut_source=true"]).startswith("--set data.cut_source=true: ")
