"""A configuration is read as written, or refused in one line that says what would be right."""

import dataclasses
import re
from pathlib import Path

import pytest

from keras_transformer import TransformerConfig
from keras_transformer.training.schema import CldrData, ModelSettings, Settings, TextData
from keras_transformer.training.settings import (
    CONFIGS,
    SettingsError,
    differences,
    load_settings,
    save_settings,
)


def write(folder, text):
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder, text, overrides=()):
    with pytest.raises(SettingsError) as error:
        load_settings(write(folder, text), overrides)
    message = str(error.value)
    assert "\n" not in message
    return message


TEXT = """
[data]
source = "text"
train_source = "train.en"
train_target = "train.de"
validation_source = "val.en"
validation_target = "val.de"
"""


def test_an_empty_file_gives_the_defaults(tmp_path):
    settings = load_settings(write(tmp_path, ""))
    assert settings == Settings()
    assert isinstance(settings.data, CldrData)
    # Section 5.3 and 5.4 of the paper.
    adam = settings.optimizer
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.98, 1e-9)
    assert (settings.schedule.warmup_steps, settings.training.label_smoothing) == (4000, 0.1)


def test_values_of_the_file_are_used(tmp_path):
    text = '[model]\npreset = "base"\nnum_layers = 2\n[schedule]\nkind = "linear"\npeak = 1e-3\n'
    settings = load_settings(write(tmp_path, text))
    config = settings.model.config(vocab_size=101, pad_id=5)
    assert config == TransformerConfig(vocab_size=101, pad_id=5, num_layers=2)
    assert settings.schedule.peak == 1e-3


def test_model_has_every_field_that_is_not_the_tokenizers():
    fields = {field.name for field in dataclasses.fields(TransformerConfig)}
    tokenizers = {"vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_id"}
    assert set(ModelSettings.model_fields) - {"preset"} == fields - tokenizers


def test_overrides_are_toml_values(tmp_path):
    overrides = [
        "training.updates=12",
        "training.jit_compile=true",
        "schedule.peak = 1e-3",
        'data.source_language="fr"',
        "data.target_language=it",
    ]
    settings = load_settings(write(tmp_path, "[training]\nupdates = 5\n"), overrides)
    assert settings.training.updates == 12
    assert settings.training.jit_compile is True
    assert settings.schedule.peak == 1e-3
    assert (settings.data.source_language, settings.data.target_language) == ("fr", "it")


def test_paths_are_relative_to_the_file_and_variables_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUS", str(tmp_path / "corpus"))
    monkeypatch.chdir(Path("/"))
    text = TEXT.replace('"train.de"', '"${CORPUS}/train.de"').replace('"val.en"', '"~/val.en"')
    data = load_settings(write(tmp_path, text), ["data.validation_target=here.de"]).data
    assert isinstance(data, TextData)
    assert data.train_source == str(tmp_path / "train.en")
    assert data.train_target == str(tmp_path / "corpus" / "train.de")
    assert data.validation_source == str(Path.home() / "val.en")
    assert data.validation_target == "/here.de"


def test_a_storage_address_is_left_alone(tmp_path):
    text = TEXT.replace('"train.en"', '"gs://bucket/train.en"')
    assert load_settings(write(tmp_path, text)).data.train_source == "gs://bucket/train.en"


@pytest.mark.parametrize(
    "text", ["", TEXT, '[model]\npreset = "base"\nd_k = 16\n', "[optimizer]\nclip_norm = 1\n"]
)
def test_saved_settings_load_equal(tmp_path, text):
    settings = load_settings(write(tmp_path, text))
    saved = tmp_path / "run" / "config.toml"
    saved.parent.mkdir()
    save_settings(settings, saved)
    assert load_settings(saved) == settings


def test_differences_name_the_keys(tmp_path):
    one = load_settings(write(tmp_path, ""))
    other = load_settings(write(tmp_path, TEXT), ["training.seed=3"])
    assert differences(one, one) == []
    assert "training.seed" in differences(one, other)
    assert "data.train_source" in differences(one, other)
    assert "data.examples" in differences(one, other)
    assert "model.preset" not in differences(one, other)


def test_every_shipped_configuration_loads(monkeypatch):
    monkeypatch.setenv("KERAS_TRANSFORMER_DATA", "/data")
    names = sorted(path.stem for path in CONFIGS.glob("*.toml"))
    assert {"demo", "multi30k", "wmt14_en_de_base", "wmt14_en_fr_big"} <= set(names)
    for name in names:
        assert load_settings(name).model.config().d_model > 0


MISTAKES = {
    "unknown key": (
        "[training]\nupdate = 3",
        r"config.toml: training.update is no setting; did you mean updates\? "
        "Valid keys: updates, accumulate, subword_sampling",
    ),
    "unknown key of one kind of data": (
        "[data]\ntrain_source = 'a'",
        r"data.train_source is no setting.* Valid keys: max_length, .* examples",
    ),
    "unknown section": (
        "[trainin]\nupdates = 3",
        r"\[trainin\] is no section; did you mean training\? Valid sections: model, data, ",
    ),
    "out of range": ("[training]\nupdates = 0", r"training.updates must be .*0. Received: 0\."),
    "wrong type": ('[training]\nupdates = "9"', r"training.updates must be .*integer. .*'9'\."),
    "not one of the choices": (
        '[training]\nprecision = "float64"',
        r"training.precision must be 'auto', 'float32', 'mixed_bfloat16' or 'mixed_float16'. "
        "Received: 'float64'",
    ),
    "not a number": ("[optimizer]\nepsilon = nan", r"optimizer.epsilon must be a finite number"),
    "unknown preset": (
        '[model]\npreset = "huge"',
        r"model.preset must be one of base, .*tiny. Received: 'huge'",
    ),
    "a rule of the model": (
        "[model]\nd_model = 10\nnum_heads = 4",
        r"\[model\] `d_model` must be divisible by `num_heads`",
    ),
    "a choice of the model": ('[model]\nnorm = "post-norm"', r"\[model\] `norm` must be one of"),
    "a section that is a value": ("training = 3", r"training must be a section, \[training\]"),
    "data that is a value": ("data = 3", r"data must be a section, \[data\]"),
    "unknown kind of data": (
        '[data]\nsource = "csv"',
        r"data.source must be one of cldr, text, tfds. Received: 'csv'",
    ),
    "missing key": ('[data]\nsource = "tfds"', r"data.name is missing. Keys of \[data\]: .*name"),
    "half of a pair": (
        TEXT + 'test_source = "t.en"',
        r"\[data\] `test_source` and `test_target` must be given together",
    ),
    "a sentence larger than a batch": (
        "[data]\nbatch_tokens = 50",
        r"\[data\] `batch_tokens` must be at least `max_length`.*batch_tokens=50",
    ),
    "longer than the model": (
        "[data]\nmax_length = 200",
        r"`data.max_length` must not exceed `model.max_length`.*data.max_length=200",
    ),
    "linear without a peak": (
        '[schedule]\nkind = "linear"',
        r"\[schedule\] `kind = .* needs `peak",
    ),
    "two heights": ("[schedule]\nscale = 2\npeak = 1e-3", r"\[schedule\] `scale` belongs to"),
    "all warm-up": (
        '[schedule]\nkind = "linear"\npeak = 1e-3\nwarmup_steps = 9\n[training]\nupdates = 9',
        r"`schedule.warmup_steps` must be below `training.updates`",
    ),
    "patience for what": (
        "[training]\npatience = 3",
        r'\[training\] `patience` needs `best_by`, which is "perplexity" or "bleu"',
    ),
    "the best of what": (
        '[training]\nfinal_model = "best"',
        r'\[training\] `final_model = "best"` needs `best_by`',
    ),
    "BLEU of nothing": (
        '[training]\nbest_by = "bleu"\nvalidate_sentences = 0',
        r'\[training\] `best_by = "bleu"` needs `validate_sentences`',
    ),
    "an average that never moves": (
        "[optimizer]\nema_momentum = 1",
        r"optimizer.ema_momentum must be .*less than 1. Received: 1",
    ),
    "syntax": ("[training]\nupdates = = 3", r"config.toml, line 2, column \d+: not valid TOML: "),
    "the same key twice": (
        "[training]\nseed = 1\nseed = 2",
        r"config.toml.*not valid TOML: .*seed",
    ),
    "unset variable": (
        TEXT.replace("train.en", "${NO_SUCH_VARIABLE}/x"),
        r"data.train_source = '\$\{NO_SUCH_VARIABLE\}/x' needs the environment variable "
        "NO_SUCH_VARIABLE, which is not set",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line(tmp_path, case):
    text, expected = MISTAKES[case]
    message = refused(tmp_path, text)
    assert re.search(expected, message), message
    assert message.startswith(str(tmp_path / "config.toml"))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.updates", "--set training.updates: must read section.key=value"),
        ("updates=3", "--set updates=3: must read section.key=value"),
        ("training.update=3", "training.update is no setting; did you mean updates"),
        ("training.updates=many", "training.updates must be a valid integer. Received: 'many'"),
        ("data.data_dir=$NO_SUCH_VARIABLE", "needs the environment variable NO_SUCH_VARIABLE"),
    ],
)
def test_a_mistake_in_an_override_is_one_line(tmp_path, override, message):
    assert message in refused(tmp_path, "", [override])


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    with pytest.raises(SettingsError, match="no such configuration file. .*demo, multi30k"):
        load_settings(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(SettingsError, match="latin.toml: not UTF-8: byte 5 cannot be read"):
        load_settings(tmp_path / "latin.toml")
