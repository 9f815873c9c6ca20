"""The page on the command line, made from the commands themselves.

    python .ci/command_line.py

It writes `docs/command_line.md`; a test compares the page with the commands.
"""

import inspect
import pathlib
import re
import sys
from collections.abc import Iterator

import click

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from keras_transformer.cli.help import GroupedCommand  # noqa: E402
from keras_transformer.cli.main import COMPLETION, EXIT_CODES, SECTIONS, cli  # noqa: E402

PAGE = ROOT / "docs" / "command_line.md"
SHARED = 3  # an option of so many commands is described once
START_FILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/config.fish"}
INTRODUCTION = """\
# Command line

`keras-transformer COMMAND --help` prints the section of this page about COMMAND. `make docs`
generates the page from the commands.

Results and answers go to stdout. Progress, warnings and errors go to stderr. An error is one line;
`--traceback` before the command also shows where in the code the error was raised.
"""
VARIABLES = {
    "KERAS_TRANSFORMER_DATA": "Folder of the real data that some packaged configurations need, "
    "such as `multi30k`: see [Real data](data.md). Any path in a configuration may contain "
    "environment variables.",
    "KERAS_TRANSFORMER_API_KEY": "`serve`: the key that requests must have, unless "
    "`--api-key-file` names a file.",
    "TF_CPP_MIN_LOG_LEVEL": "Messages of TensorFlow that are shown: 0 all, 1 warnings and "
    "errors, 2 errors, 3 none. Default: 3.",
    "TF_CONFIG": "`train --strategy multi_worker`: the list of machines, and the index of this "
    "machine: see [Training at scale](scale.md).",
    "TPU_NAME": "`train --strategy tpu`: the TPU.",
    "TFDS_DATA_DIR": "Folder of TensorFlow Datasets and of generated data. Default: "
    "`~/tensorflow_datasets`.",
    "HF_TOKEN, HF_HOME, HF_ENDPOINT": "Settings of the package `huggingface_hub`, with which "
    "`convert hf` downloads a repository.",
    "ONEDNN_MAX_CPU_ISA": "Newest processor instructions that oneDNN may use. If they do not "
    "include bfloat16, `train` does not choose bfloat16 as its precision.",
    "CT2_FORCE_CPU_ISA, XLA_FLAGS": "Settings of CTranslate2 and XLA. The report of an export "
    "contains the values of these variables and of `ONEDNN_MAX_CPU_ISA`.",
    "TF_ONEDNN_USE_SYSTEM_ALLOCATOR": "If this variable is not set, `export` and `convert` set "
    "it to 1, so that TensorFlow returns free memory to the system.",
    "GLIBC_TUNABLES, MALLOC_MMAP_THRESHOLD_": "If one of these variables sets the C library's "
    "threshold for large blocks, `export` and `convert` do not change this threshold.",
    "KERAS_BACKEND": "Every command sets this variable to `tensorflow`, the only backend that "
    "the commands support.",
}
NEXT = """\
## Read next

- [Quickstart](quickstart.md): the commands one after the other.
- [Training settings](settings.md): what `--set` may change.
- [Troubleshooting](troubleshooting.md): errors and their remedies.
"""


def commands(group=cli, *names) -> Iterator[tuple[str, click.Command]]:
    """Yields all commands below a group, without second names, with their names in order."""
    for name in group.list_commands(click.Context(group)):
        command = group.commands[name]
        if command.name != name:
            continue
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        else:
            yield " ".join([*names, name]), command


def records(command) -> dict[str | None, list[tuple[str, str]]]:
    """Returns the options of a command without `--help`, by group, as pairs of names and help."""
    assert isinstance(command, GroupedCommand)
    groups = command.options_by_group(click.Context(command, help_option_names=["--help"]))
    return {
        group: kept
        for group, rows in groups.items()
        if (kept := [row for row in rows if row[0] != "--help"])
    }


COMMANDS = dict(commands())
RECORDS = {name: records(command) for name, command in COMMANDS.items()}
OPTIONS = {
    option for command in COMMANDS.values() for param in command.params for option in param.opts
}


def shared() -> dict[str, list[tuple[str, str]]]:
    """Returns the options that at least `SHARED` commands have with the same help, by group.

    Each command lists what it requires.
    """
    counts, groups = {}, {}
    for of_command in RECORDS.values():
        for group, rows in of_command.items():
            for row in rows:
                counts[row] = counts.get(row, 0) + 1
                groups.setdefault(row, group or "General")
    result = {}
    for row, count in counts.items():
        if count >= SHARED and "required]" not in row[1]:
            result.setdefault(groups[row], []).append(row)
    return result


def cell(text) -> str:
    """Returns a help text as a cell of a table: options as code, no markup by accident."""
    text = re.sub(r"([*<|])", r"\\\1", " ".join(text.split()))
    return re.sub(
        r"--[a-z][\w-]*", lambda word: f"`{word[0]}`" if word[0] in OPTIONS else word[0], text
    )


def table(groups) -> list[str]:
    """Returns the lines of a table of options by group."""
    lines = ["| option | meaning |", "|---|---|"]
    for group, rows in groups.items():
        if group is not None:
            lines.append(f"| **{group}** | |")
        lines += [f"| `{name.replace('|', chr(92) + '|')}` | {cell(help)} |" for name, help in rows]
    return [*lines, ""]


def anchor(name) -> str:
    """Returns the anchor of the part about a command."""
    return f"#keras-transformer-{name.replace(' ', '-')}"


def part(name, shared_rows) -> list[str]:
    """Returns the lines about a command."""
    command = COMMANDS[name]
    context = click.Context(command, info_name=f"keras-transformer {name}")
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    every = [row for rows in RECORDS[name].values() for row in rows]
    own = {
        group: kept
        for group, rows in RECORDS[name].items()
        if (kept := [row for row in rows if row not in shared_rows])
    }
    others = [f"`{row[0].split()[0]}`" for row in every if row in shared_rows]
    lines = [f"### keras-transformer {name}", "", "```text", usage, "```", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        as_it_is = paragraph.startswith("\b\n")
        shown = ["```text", paragraph[2:], "```"] if as_it_is else [cell(paragraph)]
        lines += [*shown, ""]
    if own:
        lines += table(own)
    if others:
        link = "[options in common with other commands](#common-options)"
        lines += [f"This command also has these {link}: {', '.join(others)}.", ""]
    for heading, rows in command.notes().items():
        lines += [f"{heading}:", "", "| name | |", "|---|---|"]
        lines += [*(f"| `{term}` | {cell(meaning)} |" for term, meaning in rows), ""]
    return [*lines, "```sh", *command.example.splitlines(), "```", ""]


def front() -> list[str]:
    """Returns the lines before the commands: exit codes, completion, variables and a list."""
    lines = [INTRODUCTION, "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES]
    lines += ["", "## Completion", ""]
    lines += [
        "Your shell completes commands, options and choices after you add a line to its start "
        "file.",
        "",
    ]
    for shell, line in COMPLETION:
        lines += [f"{shell}, in `{START_FILES[shell]}`:", "", "```text", line, "```", ""]
    lines += ["## Environment variables", "", "| variable | meaning |", "|---|---|"]
    for names, meaning in VARIABLES.items():
        lines.append(f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {meaning} |")
    lines += ["", "## Commands", "", "| command | |", "|---|---|"]
    for heading, names in SECTIONS.items():
        lines.append(f"| **{heading}** | |")
        for name in names:
            lines += listed(name)
    return [*lines, ""]


def listed(name) -> list[str]:
    """Returns the rows of a command, or of the commands of a group, in the list of all."""
    below = [other for other in COMMANDS if other == name or other.startswith(f"{name} ")]
    if not below:
        return [f"| `{name}` | {cell(cli.about(name))} |"]
    return [
        f"| [`{other}`]({anchor(other)}) | {cell(COMMANDS[other].get_short_help_str())} |"
        for other in below
    ]


def page() -> str:
    """Returns the text of `docs/command_line.md`."""
    groups = shared()
    rows = {row for of_group in groups.values() for row in of_group}
    lines = front()
    for heading, names in SECTIONS.items():
        lines += [f"## {heading}", ""]
        for name in COMMANDS:
            if name.split()[0] in names:
                lines += part(name, rows)
    lines += ["## Common options", "", *table(groups), NEXT]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
