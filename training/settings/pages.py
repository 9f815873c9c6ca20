"""Pages of all settings for `docs/`: one for every configuration, one for models, one per task."""

import pathlib

from keras_transformer.files import replacing
from keras_transformer.tasks import TASKS
from keras_transformer.training.settings.fields import DataSettings
from keras_transformer.training.settings.page import tables
from keras_transformer.training.settings.sources import data_kinds

FIRST, MODELS = "settings.md", "settings/model.md"

INTRODUCTION = """\
# Training settings

`keras-transformer train CONFIG.toml --output RUN` reads these settings; `--set section.key=value`
replaces single values. Only `[data]` is required. `keras-transformer settings` prints all settings,
and `keras-transformer settings classification` those of one task.

This page has the sections of every configuration. The other settings depend on the model or the
task:

| settings | page |
|---|---|
"""
OF_MODELS = """\
# Settings of models

These keys of `[model]` are the same for every task, and so are the kinds of position, mixer and
other values below them, each with its own keys. [Training settings](../settings.md) has the other
sections of a configuration and a list of all pages.
"""
OF_TASKS = """\
# Settings for {}

A configuration also has the [keys of every model](model.md) and the
[sections of every configuration](../settings.md).
"""
NEXT = """\
## Read next

- [Translation](translation.md): a complete configuration, and the values that follow from the data.
- [Fine-tuning](fine_tuning.md): settings that start from another run.
- [Training at scale](scale.md): settings for several devices and for memory."""


def as_pages() -> dict[str, str]:
    """Returns the Markdown of each page, by its path in `docs/`.

    A kind of data stands on the page of the first task that it has the columns of, or on the first
    page if it suits every task.
    """
    groups = _groups()
    openings = {FIRST: INTRODUCTION + _contents(groups), MODELS: OF_MODELS}
    for page, tasks in groups.items():
        openings[page] = OF_TASKS.format(_title(tasks)) + _elsewhere(page, groups)
    parts = {page: [opening.rstrip("\n")] for page, opening in openings.items()}
    for table in tables():
        parts[_page_of(table, groups)].append(_section(table))
    parts[FIRST].append(NEXT)
    return {page: "\n\n".join(texts) + "\n" for page, texts in parts.items()}


def write_pages(folder: pathlib.Path) -> None:
    """Writes the pages to a folder, such as `docs/`.

    Raises:
        OSError: If a page cannot be written.
    """
    for name, text in as_pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")


def _groups():
    """Returns the tasks that share a model, by their page."""
    by_model = {}
    for task in TASKS.values():
        by_model.setdefault(task.config_class, []).append(task)
    return {f"settings/{tasks[0].name}.md": tasks for tasks in by_model.values()}


def _page_of(table, groups):
    if table.heading == "[model]":
        page = f"settings/{table.name}.md"
        return page if page in groups else MODELS
    fits = _pages_of_data(table.name, groups) if table.heading == "[data]" else ()
    return fits[0] if fits else FIRST


def _pages_of_data(name, groups):
    """Returns the pages of the tasks that a kind of data suits; none for one that suits all."""
    kind = data_kinds()[name]
    if kind.check_columns is not DataSettings.check_columns:
        return ()
    return [page for page, tasks in groups.items() if tasks[0].columns == kind.columns]


def _contents(groups):
    rows = [
        "| keys of every model; positions, mixers, similar values | [Models](settings/model.md) |"
    ]
    for page, tasks in groups.items():
        kinds = " or ".join(f'"{task.name}"' for task in tasks)
        rows.append(f"| `task.kind = {kinds}` | [{_title(tasks).capitalize()}]({page}) |")
    return "\n".join(rows)


def _elsewhere(page, groups):
    """Returns a sentence on the kinds of data of a task that are on another page."""
    links = []
    for name in data_kinds():
        first, *others = _pages_of_data(name, groups) or [FIRST]
        if page in others:
            links.append(f"[`{name}`]({pathlib.PurePath(first).name})")
    return f"\nIts kinds of data include {' and '.join(links)}.\n" if links else ""


def _title(tasks):
    return " and ".join(task.name.replace("_", " ") for task in tasks)


def _section(table):
    """Returns a table in Markdown, below its heading."""
    kind = f", `{table.kind}`" if table.kind else ""
    lines = [f"## `{table.heading}`{kind}\n", *([f"{table.about}\n"] if table.about else [])]
    lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
    for setting in table.settings:
        cells = f"`{setting.key}`", setting.kind, setting.default, setting.meaning
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)
