"""The page of settings has every key of the schema, and equals `docs/settings.md`."""

import pathlib
import re
import subprocess
import sys
import time
from typing import ClassVar, Literal

import pytest
from click.testing import CliRunner
from pydantic import Field

from keras_transformer import TransformerConfig, variants
from keras_transformer.cli.main import cli
from keras_transformer.tasks import TASKS
from keras_transformer.training import TokenData
from keras_transformer.training.settings import sources
from keras_transformer.training.settings.model_sections import ModelSettings, model_settings
from keras_transformer.training.settings.page import as_markdown, as_text, tables
from keras_transformer.training.settings.schema import Settings
from keras_transformer.training.settings.sources import data_kinds
from keras_transformer.training.settings.training_sections import LoraSettings

PACKAGE = "keras_transformer."
ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def kinds_of_the_package(monkeypatch):
    """Without those that other tests have registered."""
    for option, kinds in variants.KINDS.items():
        ours = {name: kind for name, kind in kinds.items() if kind.__module__.startswith(PACKAGE)}
        monkeypatch.setitem(variants.KINDS, option, ours)


def by_name(section=None):
    """Returns the settings of the tables; a task and a kind of data may have the same name."""
    return {
        table.name: {setting.key: setting for setting in table.settings}
        for table in tables(section)
    }


# Options of models that come in several kinds, each with options of its own.
VALUES = tuple(
    f"{name}."
    for task in TASKS.values()
    for part in task.config_class.description.values()
    for name, field in part.options().items()
    if field.metadata["of"] is not None
)


def test_every_key_has_a_type_a_default_and_a_description():
    models = {name: field.annotation for name, field in Settings.model_fields.items()}
    models = {**models, **data_kinds()}
    del models["data"]
    models["training.lora"] = LoraSettings
    page, general = by_name(), set(by_name()["model"])
    values = {name for name in page if name.startswith(VALUES)}
    assert {"position.rotary", "position.scaling.yarn", "time.temporal"} <= values
    of_tasks = {table.name for table in tables("model")} - {"model"} - values
    assert of_tasks == set(TASKS) - {"summarization"}  # it uses the model of translation
    assert set(page) == set(models) | of_tasks | values
    for task in of_tasks:
        keys = set(model_settings(TASKS[task].config_class).model_fields)
        own = set(by_name("model")[task])
        assert keys == own | general & keys and not general & own
    for name in page:
        if name in models and name != "model":
            assert set(page[name]) == set(models[name].model_fields)
        for setting in page[name].values():
            assert setting.kind and setting.default, setting.key
            assert setting.meaning.endswith("."), setting.key
            assert len(setting.meaning) > 12, setting.key


def test_types_and_defaults_are_those_of_the_schema():
    page = by_name()
    assert page["training"]["updates"].kind == "integer above 0"
    assert page["training"]["updates"].default == "depends on the data"
    assert page["training"]["log_every"].default == "50"
    assert page["training"]["seed"].kind == "integer at least 0 and below 2147483648"
    figures = {name for task in TASKS.values() for name in task.metrics}
    assert set(re.findall(r'"(\w+)"', page["training"]["best_by"].kind)) == figures
    assert {"perplexity", "bleu", "accuracy"} < figures
    assert page["task"]["kind"].default == '"translation"'
    assert page["training"]["best_by"].default == "none"
    assert page["optimizer"]["beta_2"].default == "0.98"
    assert page["vocabulary"]["split_digits"].kind == "true or false"
    assert page["vocabulary"]["split_digits"].default == "true"
    assert page["text"]["train"].kind == "file or list of files"
    assert page["text"]["train_weights"].kind == "list of: number above 0"
    assert page["text"]["validation"].kind == "path"
    assert page["cldr"]["source"].default == page["tfds"]["name"].default == "required"
    assert [setting.key for setting in tables("tfds")[0].settings][0] == "source"


def test_settings_that_a_resumed_run_may_change_are_marked():
    marked = {
        f"{name}.{key}"
        for name, settings in by_name().items()
        for key, setting in settings.items()
        if "It may change when a run resumes." in setting.meaning
    }
    assert {"training.updates", "training.patience", "cldr.data_dir"} <= marked
    assert not {"training.seed", "model.d_model", "vocabulary.size", "schedule.peak"} & marked


def test_model_settings_are_those_of_the_dataclass():
    """Types, defaults and descriptions are written once, in the dataclasses."""
    page, base = by_name()["model"], TransformerConfig()
    assert page["d_model"].kind == "integer"
    assert page["d_model"].default == f"the preset's, {base.d_model} in base"
    assert page["norm"].default == 'the preset\'s, "post" in base'
    assert page["d_k"].default == "the preset's"
    assert page["norm"].kind == "text or table" and page["activation"].kind == "text"
    assert page["dropout"].meaning == (
        "Dropout rate on the output of each sublayer, and on the sum of embedding and position "
        "(section 5.4)."
    )
    pair = by_name()["translation"]
    assert pair["num_decoder_layers"].meaning.endswith("If omitted: the value for the model.")
    assert pair["encoder"].kind == pair["decoder"].kind == "table"
    assert pair["decoder"].meaning.endswith("Or a string, the `mixer` of the decoder.")
    assert '"ssru"' in page["mixer"].meaning
    assert "vocab_size" not in pair and "pad_id" not in pair
    assert {"start_from", "preset"} <= set(list(ModelSettings.model_fields)[:4])


def test_the_page_in_docs_is_generated_from_the_schema():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == as_markdown() + "\n", "run `make docs`"


def test_the_page_is_a_table_for_each_section():
    lines = as_markdown().splitlines()
    assert lines[0] == "# Training settings"
    headings = [line for line in lines if line.startswith("## ")]
    assert headings[:4] == [
        "## `[task]`", "## `[model]`",
        '## `[model]`, `task.kind = "translation" or "summarization"`',
        '## `[model]`, `task.kind = "classification"`',
    ]  # fmt: skip
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == sum(len(table.settings) for table in tables())
    assert all(line.replace("\\|", "").count("|") == 5 for line in rows)


@pytest.mark.parametrize(
    ("section", "headings"),
    [
        ("schedule", ["[schedule]"]),
        ("text", ['[data]  source = "text"']),
        ("data", [f'[data]  source = "{kind}"' for kind in data_kinds()]),
    ],
)
def test_the_command_prints_one_section(section, headings):
    done = CliRunner().invoke(cli, ["settings", section])
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("[")] == headings
    assert done.stdout == as_text(section) + "\n"
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_the_command_prints_all_sections_or_the_page():
    assert CliRunner().invoke(cli, ["settings"]).stdout == as_text() + "\n"
    assert CliRunner().invoke(cli, ["settings", "--markdown"]).stdout == as_markdown() + "\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["schedul"],
            "Error: `section` must be one of task, model, .*; did you mean schedule? Received",
        ),
        (
            ["x"],
            "Error: `section` must be one of task, model, data, vocabulary, .*. Received: ",
        ),
        (["model", "--markdown"], "Error: --markdown has no effect on one section: it prints"),
    ],
)
def test_a_wrong_section_is_reported_in_one_line(arguments, message):
    done = CliRunner().invoke(cli, ["settings", *arguments])
    assert done.exit_code != 0 and done.stdout == ""
    lines = [x for x in done.stderr.splitlines() if x and not x.startswith(("Usage:", "Try "))]
    first, _, last = message.partition(".*")
    assert len(lines) == 1 and lines[0].startswith(first) and last in lines[0]


def test_the_command_does_not_import_tensorflow(tmp_path):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise SystemExit('TensorFlow loaded')")
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "keras_transformer", "settings", "schedule"],
        capture_output=True, text=True, cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0 and "warmup_steps = depends" in done.stdout, done.stderr
    assert done.stderr == "" and time.perf_counter() - begin < 60


def test_a_kind_of_data_without_a_docstring_has_a_table(monkeypatch):
    monkeypatch.setattr(sources, "_KINDS", dict(sources._KINDS))

    class Bare(TokenData):
        columns: ClassVar = ("text",)
        source: Literal["bare"] = Field(description="The kind of data.")

    Bare.__doc__ = None
    sources.register_source(Bare)
    assert [table.about for table in tables("data") if table.name == "bare"] == [""]
