"""A configuration is read as written, or refused in one line that states what is valid."""

import re
from pathlib import Path

import pytest

from keras_transformer import TransformerConfig
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.data_sections import TextData
from keras_transformer.training.settings.derived import left_out
from keras_transformer.training.settings.model_sections import ModelSettings, model_settings
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import data_kinds
from keras_transformer.training.settings.toml import (
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


DEMO = '[data]\nsource = "cldr"\n'

TEXT = """
[data]
source = "text"
train_source = "train.en"
train_target = "train.de"
validation_source = "val.en"
validation_target = "val.de"
"""


LISTS = """
[data]
source = "text"
train = ["a.tsv", "/b.tsv.gz"]
train_weights = [1, 0.25]
validation = "val.tsv"
tsv_columns = [2, 1]
source_language = "en"
target_language = "de"
"""


def test_data_alone_gives_the_defaults(tmp_path):
    settings = load_settings(write(tmp_path, DEMO))
    assert (
        settings
        == Settings.model_validate({"data": {"source": "cldr"}})
        == load_settings(write(tmp_path, ""), ["data.source=cldr"])
    )
    # Sections 5.3 and 5.4 of the paper.
    adam = settings.optimizer
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.98, 1e-9)
    assert settings.training.label_smoothing == 0.1
    assert left_out(settings) == [
        "training.updates", "training.validate_every", "training.checkpoint_every",
        "schedule.warmup_steps", "schedule.peak", "vocabulary.size",
    ]  # fmt: skip


def test_values_of_the_file_are_used(tmp_path):
    text = DEMO + '[model]\npreset = "base"\nnum_layers = 2\n[schedule]\npeak = 1e-3\n'
    settings = load_settings(write(tmp_path, text))
    config = settings.config(vocab_size=101, pad_id=5)
    assert config == TransformerConfig(vocab_size=101, pad_id=5, num_layers=2)
    assert settings.schedule.peak == 1e-3


def test_the_model_has_every_field_not_set_by_tokenizers_or_data():
    known = {name for task in TASKS.values() for name in task.config_class.options()}
    decided = {"vocab_size", "eos_id", "labels", "image_height", "max_length"}
    for task in TASKS.values():
        config_class = task.config_class
        options = config_class.options()
        free = {name for name, field in options.items() if field.metadata["set_by"] is None}
        own = set(model_settings(config_class).model_fields) - set(ModelSettings.model_fields)
        stacks = {"encoder", "decoder"} & set(config_class.description)
        assert own == (free - config_class.follow) | {*config_class.aliases} | stacks
        assert not own & decided - {"max_length"} and "d_model" in own
    assert decided <= known


def test_overrides_are_toml_values(tmp_path):
    overrides = [
        "training.updates=12",
        "training.jit_compile=true",
        "schedule.peak = 1e-3",
        "schedule.warmup_steps=3",
        'data.source_language="fr"',
        "data.target_language=it",
    ]
    settings = load_settings(write(tmp_path, DEMO + "[training]\nupdates = 5\n"), overrides)
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
    assert data.train_source == [str(tmp_path / "train.en")]
    assert data.train_target == [str(tmp_path / "corpus" / "train.de")]
    assert data.validation_source == str(Path.home() / "val.en")
    assert data.validation_target == "/here.de"


def test_a_storage_address_is_left_alone(tmp_path):
    text = TEXT.replace('"train.en"', '"gs://bucket/train.en"')
    assert load_settings(write(tmp_path, text)).data.train_source == ["gs://bucket/train.en"]


@pytest.mark.parametrize(
    "text",
    [
        DEMO,
        TEXT,
        LISTS,
        DEMO + '[model]\npreset = "base"\nd_k = 16\n',
        DEMO + "[optimizer]\nclip_norm = 1\n",
    ],
)
def test_saved_settings_are_loaded_unchanged(tmp_path, text):
    settings = load_settings(write(tmp_path, text))
    saved = tmp_path / "run" / "config.toml"
    saved.parent.mkdir()
    save_settings(settings, saved)
    assert load_settings(saved) == settings


def test_paths_below_the_file_move_with_it(tmp_path):
    path = write(tmp_path, TEXT)
    save_settings(load_settings(path), path)
    text = path.read_text()
    assert str(tmp_path) not in text and 'train_source = ["train.en"]' in text
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "config.toml").write_text(text)
    assert load_settings(moved / "config.toml").data.train_source == [str(moved / "train.en")]
    other = tmp_path / "other" / "config.toml"
    other.parent.mkdir()
    save_settings(load_settings(path), other)  # in a file elsewhere they are absolute
    assert load_settings(other) == load_settings(path)


def test_differences_name_the_keys(tmp_path):
    one = load_settings(write(tmp_path, DEMO))
    other = load_settings(write(tmp_path, TEXT), ["training.seed=3"])
    assert differences(one, one) == []
    assert "training.seed" in differences(one, other)
    assert "data.train_source" in differences(one, other)
    assert "data.examples" in differences(one, other)
    assert "model.preset" not in differences(one, other)


def test_every_shipped_configuration_loads(monkeypatch):
    for name in ("KERAS_TRANSFORMER_DATA", "MULTI30K", "SST2"):
        monkeypatch.setenv(name, "/data")
    names = sorted(path.stem for path in CONFIGS.glob("*.toml"))
    assert {"demo", "multi30k", "wmt14_en_de_base", "wmt14_en_fr_big"} <= set(names)
    assert {"sst2", "language_model_multi30k"} <= set(names)
    for name in names:
        assert load_settings(name).config().d_model > 0


KINDS = ", ".join(data_kinds())
MISTAKES = {
    "unknown key": (
        "[training]\nupdate = 3",
        r"config.toml: training.update is not a setting; did you mean updates\? "
        "Valid keys: updates, accumulate, subword_sampling",
    ),
    "unknown key of one kind of data": (
        DEMO + "train_source = 'a'",
        r"data.train_source is not a setting.* Valid keys: store, max_length, .* examples",
    ),
    "unknown section": (
        "[trainin]\nupdates = 3",
        r"\[trainin\] is not a section; did you mean training\? Valid sections: task, model, da",
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
        r"model.preset must be one of base, .*tiny, small, .*. Received: 'huge'",
    ),
    "a rule of the model": (
        "[model]\nd_model = 10\nnum_heads = 4",
        r"\[model\] `d_model` must be divisible by `num_heads`",
    ),
    "AdamW without decay": (
        '[optimizer]\nkind = "adamw"',
        r'\[optimizer\] `kind = "adamw"` needs `weight_decay`, for example',
    ),
    "decay of Adam": (
        "[optimizer]\nweight_decay = 0.1",
        r'\[optimizer\] `weight_decay` needs `kind = "adamw"`',
    ),
    "a choice of the model": (
        '[model]\nnorm = "post-norm"',
        r"\[model\] `norm` must be one of post, pre, .*Received: norm='post-norm'",
    ),
    "an activation of the model": (
        '[model]\nactivation = "rely"',
        r"\[model\] `activation` must be a Keras activation.*activation='rely'",
    ),
    "a section that is a value": ("training = 3", r"training must be a section, \[training\]"),
    "data that is a value": ("data = 3", r"data must be a section, \[data\]"),
    "unknown kind of data": (
        '[data]\nsource = "csv"',
        rf"data.source must be one of {KINDS}. Received: 'csv'",
    ),
    "misspelt kind of data": ('[data]\nsource = "txt"', rf"{KINDS}; did you mean text\? .*: 'txt'"),
    "no data": (
        "[model]  # and no [data]",
        rf"\[data\] is missing, .* its source must be one of {KINDS}\.",
    ),
    "misspelt data": (
        "[dat]\nsource = 'cldr'  # not [data]",
        r"\[dat\] is not a section; did you mean data\? Valid sections",
    ),
    "no kind of data": (
        "[data]\nexamples = 1000",
        rf"data.source is missing: it must be one of {KINDS}\.",
    ),
    "missing key": (
        '[data]\nsource = "tfds"',
        r"data.name is missing: Name of the dataset, .*wmt14.*\. Keys of \[data\]: .*name",
    ),
    "no training files": (
        '[data]\nsource = "text"\nvalidation = "v"',
        r"\[data\] `train` is missing: set it to .* or set `train_source` and `train_target`, a f",
    ),
    "no validation files": (
        '[data]\nsource = "text"\ntrain = "v"',
        r"\[data\] `validation` is missing: .* or set `validation_source` and `validation_target`",
    ),
    "files twice": (
        TEXT + 'train = "t.tsv"',
        r"\[data\] `train` replaces `train_source` and `train_target`: remove it or the other",
    ),
    "sides of different numbers": (
        TEXT.replace('"train.en"', '["a", "b"]'),
        r"`train_source` and `train_target` must name the same number of files. Received: 2 and 1",
    ),
    "no file": (
        TEXT.replace('"train.en"', "[]"),
        r"data.train_source must be the name of a file, or a list of such names. Received: \[\]",
    ),
    "a file that is a number": (
        TEXT.replace('"train.en"', '["a", 3]'),
        r"data.train_source must be the name of a file, .*3\]\.$",
    ),
    "weights of nothing": (
        TEXT + "train_weights = [1, 2]",
        r"`train_weights` must contain a number for each file .* Received: 2 numbers for 1 files",
    ),
    "a corpus that never counts": (
        LISTS.replace("0.25", "0"),
        r"data.train_weights.1 must be greater than 0. Received: 0\.",
    ),
    "one column": (
        LISTS.replace("[2, 1]", "[2]"),
        r"`data.tsv_columns` must have 2 numbers, for source and target. Received: \[2\]",
    ),
    "column zero": (LISTS.replace("[2, 1]", "[0, 1]"), r"data.tsv_columns.0 must be greater than"),
    "columns of nothing": (TEXT + "tsv_columns = [1, 2]", r"`tsv_columns` has no effect without"),
    "half of the languages": (
        TEXT + 'source_language = "en"',
        r"`source_language` and `target_language` must be given together",
    ),
    "half of a pair": (
        TEXT + 'test_source = "t.en"',
        r"\[data\] `test_source` and `test_target` must be given together",
    ),
    "a side of a task with one column": (
        'task = { kind = "language_modelling" }\n[data]\nsource = "text"\ntrain_source = "t"\n'
        'validation = "v"',
        r"\[data\] `train_source` .* with two columns\. For any task, `train` is a file with all",
    ),
    "a sentence larger than a batch": (
        DEMO + "batch_tokens = 50",
        r"\[data\] `batch_tokens` must be at least `max_length`.*batch_tokens=50",
    ),
    "longer than the model": (
        DEMO + "max_length = 200",
        r"`data.max_length` must not exceed `model.max_length`.*data.max_length=200",
    ),
    "linear without a peak": ('[schedule]\nkind = "linear"', r'`kind = "linear"` needs `peak`'),
    "cosine without a peak": ('[schedule]\nkind = "cosine"', r'`kind = "cosine"` needs `peak`'),
    "constant without it": ('[schedule]\nkind = "constant"', r'`kind = "constant"` needs `peak`'),
    "scaled cosine": (
        '[schedule]\nkind = "cosine"\npeak = 1e-3\nscale = 2',
        r"\[schedule\] `scale` belongs to",
    ),
    "two heights": ("[schedule]\nscale = 2\npeak = 1e-3", r"\[schedule\] `scale` belongs to"),
    "patience for what": (
        "[training]\npatience = 3",
        r'\[training\] `patience` needs `best_by`, such as "perplexity"',
    ),
    "the best of what": (
        '[training]\nfinal_model = "best"',
        r'\[training\] `final_model = "best"` needs `best_by`',
    ),
    "a final rate of a constant one": (
        '[schedule]\nkind = "constant"\npeak = 0.1\nfinal = 0.01',
        r'\[schedule\] `final` belongs to `kind = "linear"` or `"cosine"`: with `"constant"` it h',
    ),
    "a final rate above the peak": (
        '[schedule]\nkind = "linear"\npeak = 0.1\nfinal = 0.2',
        r"\[schedule\] `final` must not exceed `peak`.* Received: final=0.2, peak=0.1",
    ),
    "checkpoints after updates and epochs": (
        "[training]\ncheckpoint_every = 100\ncheckpoint_epochs = 1",
        r"`checkpoint_epochs` replaces `checkpoint_every`: remove one of them. Received: .*=100",
    ),
    "two ways to compare two passes": (
        "[training]\nsimcut = 3.0\nr_drop = 5.0",
        r"`simcut` and `r_drop` cannot be combined: .* Received: simcut=3.0, r_drop=5.0",
    ),
    "a cutoff of nothing": (
        "[training]\ntoken_cutoff = 0.1",
        r"\[training\] `token_cutoff` needs `simcut`, for example 3",
    ),
    "CTC without frames": (
        "[training]\nctc_weight = 0.3",
        r"`training.ctc_weight` has no effect on translation; remove it",
    ),
    "SimCut of labels": (
        '[task]\nkind = "classification"\n[training]\nsimcut = 3.0\n'
        '[data]\nsource = "text"\ntrain = "t"\nvalidation = "v"',
        r"`training.simcut` has no effect on classification; remove it",
    ),
    "BLEU of nothing": (
        '[training]\nbest_by = "bleu"\nvalidate_sentences = 0',
        r'`training.best_by = "bleu"` needs `training.validate_sentences`',
    ),
    "an average that never moves": (
        "[optimizer]\nema_momentum = 1",
        r"optimizer.ema_momentum must be .*less than 1. Received: 1",
    ),
    "syntax": ("[training]\nupdates = = 3", r"config.toml, line 2, column \d+: not valid TOML: "),
    "the same key twice": (
        "[training]\nseed = 1\nseed = 2",
        r"config.toml.*not valid TOML: .*seed.*[^.]\.$",
    ),
    "unset variable": (
        TEXT.replace("train.en", "${NO_SUCH_VARIABLE}/x"),
        r"data.train_source = '\$\{NO_SUCH_VARIABLE\}/x' needs the environment variable "
        "NO_SUCH_VARIABLE, which is not set",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_in_one_line(tmp_path, case):
    text, expected = MISTAKES[case]
    if "[data]" not in text and not text.startswith("data"):
        text += f"\n{DEMO}"
    message = refused(tmp_path, text)
    assert re.search(expected, message), message
    assert message.startswith(str(tmp_path / "config.toml"))


@pytest.mark.parametrize(
    ("kind", "warmup", "updates", "limit"),
    [
        ("inverse_sqrt", 10, 9, "at most"),
        ("constant", 10, 9, "at most"),
        ("linear", 9, 9, "below"),
        ("cosine", 9, 9, "below"),
    ],
)
def test_a_warm_up_longer_than_the_training_is_refused(tmp_path, kind, warmup, updates, limit):
    """For every kind, in the file and with `--set`; one update fewer is accepted."""
    text = f'{DEMO}[schedule]\nkind = "{kind}"\npeak = 1e-3\n'
    overrides = [f"training.updates={updates}", f"schedule.warmup_steps={warmup}"]
    expected = (
        f"`schedule.warmup_steps` must be {limit} `training.updates`, the length of training. "
        f"Received: schedule.warmup_steps={warmup}, training.updates={updates}."
    )
    assert expected in refused(tmp_path, text, overrides)
    in_file = f"{text}warmup_steps = {warmup}\n[training]\nupdates = {updates}\n"
    assert expected in refused(tmp_path, in_file)
    overrides[1] = f"schedule.warmup_steps={warmup - 1}"
    assert load_settings(write(tmp_path, text), overrides).schedule.warmup_steps == warmup - 1
    keys = ["training.updates", "schedule.warmup_steps"]
    # One alone is not an error: the other is derived from it.
    for given, other in (keys, keys[::-1]):
        assert other in left_out(load_settings(write(tmp_path, text), [f"{given}=3000"]))


def test_an_error_about_two_keys_marks_defaults(tmp_path):
    """No message blames only a default value."""
    short = refused(tmp_path, DEMO + "[model]\nmax_length = 64\n")
    assert "Received: data.max_length=100 (the default), model.max_length=64." in short
    long = refused(tmp_path, DEMO + "max_length = 2000\nbatch_tokens = 2000\n")
    assert "Received: data.max_length=2000, model.max_length=128 (the preset's)." in long
    assert "Received: batch_tokens=2048 (the default), max_length=4000." in refused(
        tmp_path, DEMO + "max_length = 4000\n"
    )
    falling = DEMO + '[schedule]\nkind = "linear"\npeak = 1e-3\n[training]\nupdates = 1\n'
    assert (
        '`training.updates` must be at least 2 with `schedule.kind = "linear"`, whose rate rises '
        "before it falls. Received: training.updates=1."
    ) in refused(tmp_path, falling)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.train=[3, '$NO_SUCH_VARIABLE']", "needs the environment variable NO_SUCH_VAR"),
        ("training.updates", "--set training.updates: must have the form section.key=value"),
        ("updates=3", "--set updates=3: must have the form section.key=value"),
        ("training.update=3", "training.update is not a setting; did you mean updates"),
        ("training.updates=many", "training.updates must be a valid integer. Received: 'many'"),
        ("data.data_dir=$NO_SUCH_VARIABLE", "needs the environment variable NO_SUCH_VARIABLE"),
    ],
)
def test_a_mistake_in_an_override_is_reported_in_one_line(tmp_path, override, message):
    assert message in refused(tmp_path, DEMO, [override])


def test_an_unreadable_file_is_reported_in_one_line(tmp_path):
    with pytest.raises(SettingsError, match="no such configuration file. .*demo, .*multi30k, "):
        load_settings(tmp_path / "nowhere.toml")
    with pytest.raises(SettingsError, match=r"^dmeo: no such .*; did you mean demo\? Config"):
        load_settings("dmeo")
    write(tmp_path, DEMO)
    with pytest.raises(SettingsError, match=r"confg.toml: no such .*; did you mean .*/config.toml"):
        load_settings(tmp_path / "confg.toml")
    with pytest.raises(SettingsError, match="is a folder; name a configuration file"):
        load_settings(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(SettingsError, match="latin.toml: not UTF-8: byte 5 cannot be read"):
        load_settings(tmp_path / "latin.toml")


def test_a_path_that_is_not_utf8_is_named_with_the_remedy(tmp_path):
    (tmp_path / "config.toml").write_text('[data]\nsource = "cldr"\n')
    overrides = ["data.store=l\udcc3\udca4ufe"]  # as Python reads it with LC_ALL=C and PYTHONUTF8=0
    with pytest.raises(SettingsError, match=r"data.store must be valid UTF-8, .* PYTHONUTF8=1 or"):
        load_settings(tmp_path / "config.toml", overrides)
