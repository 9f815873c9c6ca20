"""The reference of settings has every key of the schema, and equals the pages in `docs/`."""

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
from keras_transformer.training.settings.page import as_text, tables
from keras_transformer.training.settings.pages import as_pages
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


def test_the_pages_in_docs_are_generated_from_the_schema():
    pages, docs = as_pages(), ROOT / "docs"
    written = {str(path.relative_to(docs)) for path in (docs / "settings").iterdir()}
    assert written | {"settings.md"} == set(pages), (
        "run `make docs`, and delete pages without tasks"
    )
    for name, text in pages.items():
        assert (docs / name).read_text(encoding="utf-8") == text, f"{name}: run `make docs`"


def test_a_table_for_each_section_is_on_one_page():
    pages = as_pages()
    headings = [
        line.removeprefix("## ")
        for text in pages.values()
        for line in text.splitlines()
        if line.startswith("## `")
    ]
    shown = [f"`{x.heading}`" + (f", `{x.kind}`" if x.kind else "") for x in tables()]
    assert sorted(headings) == sorted(shown) and len(set(shown)) == len(shown)
    rows = [line for text in pages.values() for line in text.splitlines() if line[:3] == "| `"]
    keys = [row for row in rows if row.replace("\\|", "").count("|") == 5]
    assert len(keys) == sum(len(table.settings) for table in tables())
    assert len(rows) == len(keys) + len(pages) - 2, "the others are the list of pages"


def test_a_page_has_the_settings_of_its_task():
    pages = as_pages()
    assert all(text.startswith("# ") for text in pages.values())
    assert '## `[data]`, `source = "text"`' in pages["settings.md"], "for every task"
    assert "## `[training.lora]`" in pages["settings.md"]
    assert "position.scaling" in pages["settings/model.md"]
    assert '`source = "reports"`' in pages["settings/translation.md"], "and summarization"
    images = '## `[data]`, `source = "images"`'
    assert images in pages["settings/image_classification.md"]
    other = pages["settings/image_embedding.md"]
    assert images not in other and "[`images`](image_classification.md)" in other
    for task in TASKS.values():
        for kind in task.sources:
            assert f'source = "{kind}"' in pages["settings.md"] + "".join(pages.values())
            (page,) = [
                name for name, text in pages.items() if f'## `[data]`, `source = "{kind}"' in text
            ]
            assert TASKS[page.removeprefix("settings/").removesuffix(".md")].columns == task.columns


def test_a_new_task_and_new_data_get_a_page(monkeypatch):
    monkeypatch.setattr(sources, "_KINDS", dict(sources._KINDS))

    class Rhymes(TokenData):
        """Rhymes."""

        columns: ClassVar = ("word", "rhyme")
        source: Literal["rhymes"] = Field(description="The kind of data.")

    class Config(type(TASKS["classification"]).config_class):
        """Another model."""

    task = type(
        "Task", (type(TASKS["classification"]),), {"name": "rhyming", "config_class": Config}
    )()
    task.columns = Rhymes.columns
    sources.register_source(Rhymes)
    monkeypatch.setitem(TASKS, "rhyming", task)
    page = as_pages()["settings/rhyming.md"]
    assert page.startswith("# Settings for rhyming\n")
    assert '## `[model]`, `task.kind = "rhyming"`' in page
    assert '## `[data]`, `source = "rhymes"`' in page
    assert (
        '| `task.kind = "rhyming"` | [Rhyming](settings/rhyming.md) |' in as_pages()["settings.md"]
    )


@pytest.mark.parametrize(
    ("section", "headings"),
    [
        ("schedule", ["[schedule]"]),
        ("text", ['[data]  source = "text"']),
        ("data", [f'[data]  source = "{kind}"' for kind in data_kinds()]),
        ("summarization", ['[model]  task.kind = "translation" or "summarization"']),
        ("arithmetic", ['[model]  task.kind = "arithmetic"', '[data]  source = "arithmetic"']),
        ("yarn", ['[model]  position.scaling = { kind = "yarn", ... }']),
    ],
)
def test_the_command_prints_one_section(section, headings):
    done = CliRunner().invoke(cli, ["settings", section])
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("[")] == headings
    assert done.stdout == as_text(section) + "\n"
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_the_command_prints_all_sections_or_writes_the_pages(tmp_path):
    assert CliRunner().invoke(cli, ["settings"]).stdout == as_text() + "\n"
    done = CliRunner().invoke(cli, ["settings", "--markdown", str(tmp_path / "docs")])
    assert (done.exit_code, done.output) == (0, "")
    for name, text in as_pages().items():
        assert (tmp_path / "docs" / name).read_text("utf-8") == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["schedul"],
            "Error: SECTION must be one of task, model, .*; did you mean schedule? Received",
        ),
        (
            ["x"],
            "Error: SECTION must be one of task, model, data, vocabulary, .*. Received: ",
        ),
        (["model", "--markdown", "x"], "Error: --markdown has no effect on one section: it w"),
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
