"""Documents are correct: code runs, commands and settings exist, and links lead somewhere."""

import ast
import doctest
import importlib
import pathlib
import re
import shlex

import click
import pytest
import tomlkit
from documents import (
    EXAMPLE_PAGES,
    EXAMPLES,
    NEEDS,
    PAGES,
    ROOT,
    SERVER_OPTIONS,
    blocks,
    prose,
    read,
    run,
    shell,
    spans,
    unrun_examples,
)  # fmt: skip
from marks import slow

from keras_transformer.cli.main import cli
from keras_transformer.training import load_settings
from keras_transformer.training.settings import sources as kinds_of_data
from keras_transformer.training.settings.derived import left_out
from keras_transformer.training.settings.page import tables

# proto and yaml: test_serving_page.py; text: `run` of documents.py.
LANGUAGES = {"python", "toml", "sh", "proto", "yaml", "text"}
# Shell lines that the tests parse, including what may come before the command.
PARSED = re.compile(r"|#.*|((echo .* \| |TF_CONFIG='.*' +)?keras-transformer|make) .*")
# Options mentioned without a command that belong to another program.
FOREIGN = {*SERVER_OPTIONS, "--strict", "--folder", "--host"}
NAMESPACES = ("layers", "models", "decoding", "tokenizers", "pipelines", "training", "export")
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/NOTES.md")
SECTIONS = ("model", "data", "vocabulary", "optimizer", "schedule", "training")


def sources():
    folders = ("keras_transformer", "training", "export")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "keras_transformer" else ("keras_transformer", *parts))


# Code


WITH_EXAMPLES = [module_name(path) for path in sources() if ">>>" in path.read_text("utf-8")]


@pytest.mark.parametrize(
    "name", [slow(name) if ".decoding." in name else name for name in WITH_EXAMPLES]
)
def test_the_examples_of_docstrings_run(name, monkeypatch):
    """Each runs as it is, with no imports added. What they register is forgotten after them."""
    monkeypatch.setattr(kinds_of_data, "_KINDS", dict(kinds_of_data._KINDS))
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    tests = [test for test in doctest.DocTestFinder().find(module, name) if test.examples]
    assert tests, f"{name} has examples that doctest does not find"
    for test in tests:
        test.globs = {"__name__": "__main__"}
        out = []
        runner.run(test, out=out.append)
        assert not runner.failures, "".join(out)


UNMARKED = [page for page in PAGES if any(not b.needs for b in blocks(page, "python"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        page if page == "docs/layers.md" else pytest.param(page, marks=pytest.mark.slow)
        for page in UNMARKED
    ],
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run([block for block in blocks(page, "python") if not block.needs])


def test_a_test_runs_every_python_that_needs_more():
    """It names the page or what the block needs; `other` is the code of another library."""
    tests = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for page in (*PAGES, *EXAMPLES):
        for block in blocks(page, "python"):
            if block.needs not in (None, "other"):
                assert f'"{block.needs}"' in tests or f'"{page}"' in tests, f"{page}:{block.line}"


@pytest.mark.parametrize("page", (*PAGES, *EXAMPLES))
def test_every_other_block_is_tested(page):
    for block in blocks(page):
        if not block.needs:
            assert block.language in LANGUAGES, f"{page}:{block.line}"
            if block.language == "sh":
                for line in block.code.replace("\\\n", " ").split("\n"):
                    assert PARSED.fullmatch(line), f"{page}: {line}"
    comments = sum(bool(NEEDS.fullmatch(line)) for line in read(page).split("\n"))
    assert comments == sum(block.needs is not None for block in blocks(page)), (
        f"{page}: a comment `needs` must stand on the line before a block"
    )


def test_the_output_on_a_page_is_compared(tmp_path, monkeypatch):
    """Only for a block that needs nothing; a `text` block elsewhere is not compared."""
    page = "```python\nprint(1)\n```\n\n```text\n{}\n```\n\nwords\n\n```text\n3\n```\n"
    monkeypatch.setattr("documents.ROOT", tmp_path)
    for output in "12":
        (tmp_path / "page.md").write_text(page.format(output), encoding="utf-8")
        first, *others = blocks("page.md")
        assert first.output == f"{output}\n" and not any(block.output for block in others)
        if output == "1":
            run([first])
        else:
            with pytest.raises(AssertionError, match="page.md:2"):
                run([first])


def test_a_test_runs_every_example_that_no_doctest_runs():
    """These need a run or an export, or download a checkpoint; the test names file or function."""
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    runners = "".join(test for test in tests if "unrun_examples(" in test)
    for path in sources():
        for name, code in unrun_examples(path):
            named = re.search(rf'"{name}"|\b{path.stem}(\.py)?"', runners)
            assert named or "from_pretrained(" in code, f"{path}: {name}"


# Settings that a configuration may leave to the data: a student has its teacher's vocabulary, and
# a small data set the size that its text allows.
OPEN = dict.fromkeys(("docs/distillation.md", "docs/classification.md"), ["vocabulary.size"])
CONFIGURATIONS = [block for page in PAGES for block in blocks(page, "toml")]


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=lambda block: f"{block.page}:{block.line}")
def test_configurations_are_valid(block, tmp_path):
    for name in ("general", "en-de", "bert", "minilm"):
        run = tmp_path / "runs" / name
        run.mkdir(parents=True)
        (run / "config.toml").write_text(
            '[model]\npreset = "small"\n[data]\nsource = "cldr"\n[vocabulary]\nsize = 9\n'
        )
        (run / "tokenizer.model").touch()
        (run / "model.keras").touch()
    path = tmp_path / "config.toml"
    path.write_text(block.code, encoding="utf-8")
    settings = load_settings(path)
    starts = settings.model.start_from is not None  # with the vocabulary of another run
    expected = [] if starts else OPEN.get(block.page, [])
    assert left_out(settings) == expected, "complete, for data of the page's size"
    assert {"model", "data", "schedule", "training"} <= set(tomlkit.parse(block.code))


# Commands


def settings():
    for table in tables():
        for setting in table.settings:
            yield f"{table.heading.strip('[]')}.{setting.key}"


KEYS = set(settings())


def our_commands(page):
    """Yields the words after `keras-transformer` in a page, up to shell operators."""
    for line in shell(page):
        for rest in re.findall(r"(?:^|[\s|;&])keras-transformer +([a-z-].*)", line):
            words = shlex.split(rest, comments=True)
            ends = [n for n, word in enumerate(words) if word in ("<", ">", "|", "&&")]
            yield words[: ends[0]] if ends else words


def check_command(words):
    """Fails if a command, option, choice or setting does not exist."""
    command, words = cli, [word for word in words if word != "..."]
    while isinstance(command, click.Group) and words:
        if words[0].startswith("-"):
            assert words[0] in options(command), words[0]
        else:
            assert words[0] in command.commands, words[0]
            command = command.commands[words[0]]
        words = words[1:]
    if isinstance(command, click.Group):
        return
    values, rest, _ = command.make_parser(click.Context(command)).parse_args(words)
    assert not rest, f"too many arguments: {rest}"
    for parameter in command.params:
        given = values.get(parameter.name)
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(value, str) and not value.isupper():  # not a placeholder
                if not isinstance(parameter.type, click.Path):
                    parameter.type.convert(value, parameter, None)
                if parameter.name == "overrides":
                    assert value.partition("=")[0] in KEYS, value


def options(command):
    """Returns all options of a command and its subcommands."""
    own = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    return own.union(*map(options, getattr(command, "commands", {}).values()))


@pytest.mark.parametrize("page", (*PAGES, *EXAMPLES))
def test_our_commands_exist(page):
    for words in our_commands(page):
        try:
            check_command(words)
        except (click.UsageError, AssertionError) as error:
            raise AssertionError(
                f"{page}: keras-transformer {shlex.join(words)}: {error}"
            ) from None


def test_the_check_of_commands_finds_mistakes():
    for words in (
        "trane demo", "train demo --outptu RUN", "export litert RUN x --quantize int7",
        "train demo --output RUN --set training.update=1", "average RUN more", "--trace train",
        "translate RUN --beam 0",
    ):  # fmt: skip
        with pytest.raises((click.UsageError, AssertionError)):
            check_command(words.split())
    assert sum(len(list(our_commands(page))) for page in PAGES) > 50


@pytest.mark.parametrize("page", PAGES)
def test_options_and_settings_in_the_text_exist(page):
    known = options(cli) | FOREIGN
    for span in spans(page):
        if span.startswith("--"):
            for option in re.findall(r"(?:^|\s)(--[a-z][\w-]*)", span):
                assert option in known, f"{page}: {option}"
        for key in re.findall(rf"(?:^|\s)((?:{'|'.join(SECTIONS)})\.[a-z_]+) ?=", span):
            assert key in KEYS, f"{page}: {key}"


def test_exports_of_converted_runs_have_sentences():
    """A converted run has no data of its own, and the check of its export needs some."""
    exports = []
    for page in (*PAGES, *EXAMPLE_PAGES):
        converted = set()
        for command, *words in our_commands(page):
            if command == "convert" and len(words) > 2:
                converted.add(words[2])
            if command == "export" and len(words) > 2 and words[1] in converted:
                assert "--sentences" in words, f"{page}: {words}"
                exports.append(page)
    assert len({*exports}) >= 3, exports


@pytest.mark.parametrize("page", (*PAGES, *EXAMPLE_PAGES))
def test_other_commands_exist(page):
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    for line in shell(page):
        if line.startswith("make "):
            assert line.split()[1] in targets, f"{page}: {line}"
        if line.startswith("pytest "):
            assert (ROOT / line.split()[1]).exists(), f"{page}: {line}"
        if line.startswith("python benchmarks/"):
            _, program, *words = line.split()
            assert (ROOT / program).exists(), f"{page}: {line}"
            known = "".join(x.read_text("utf-8") for x in (ROOT / "benchmarks").glob("*.py"))
            for option in [word for word in words if word.startswith("--")]:
                assert option == "--help" or f'"{option}"' in known, f"{page}: {option}"


# Links


def anchors(page):
    """Yields the anchors of a page's headings, as GitHub and the site make them."""
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", (*PAGES, *EXAMPLE_PAGES, *EXAMPLES, *PROJECT))
def test_links_lead_somewhere(page):
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert path.exists(), f"{page}: {target}"
        if page.startswith("docs/"):
            assert path.is_relative_to(ROOT / "docs"), f"{page}: {target} is not on the site"
        if anchor:
            there = str(path.relative_to(ROOT))
            assert anchor in set(anchors(there)), f"{page}: {target}"


def test_the_site_has_every_page():
    listed = re.findall(r"([\w/]+\.md)$", read("mkdocs.yml"), re.MULTILINE)
    pages = sorted({*PAGES, *EXAMPLE_PAGES} - {"README.md"})
    assert sorted(f"docs/{name}" for name in listed) == pages


GUIDES = {page.stem for page in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize("page", sorted(GUIDES))
def test_a_guide_ends_with_what_to_read_next(page):
    *_, last = re.split(r"^## ", prose(f"docs/{page}.md"), flags=re.MULTILINE)
    assert last.startswith("Read next\n") and "](" in last, page


# The most words of a page outside code and tables. A longer one mixes subjects: divide it.
MOST_WORDS = {"benchmarks": 3500}


@pytest.mark.parametrize("page", sorted(GUIDES))
def test_a_page_is_short(page):
    """Goals, what was tried and older measurements belong in `benchmarks/NOTES.md`."""
    outside_tables = re.sub(r"^\|.*$", "", prose(f"docs/{page}.md"), flags=re.MULTILINE)
    assert len(outside_tables.split()) < MOST_WORDS.get(page, 2500)


# The map and the reference


def mapped(page):
    """Yields files and folders in the tables of a page, below the folder in the heading."""
    for section in re.split(r"^#+ ", prose(page), flags=re.MULTILINE):
        folder = re.match(r"`([\w/]+/)`", section)
        for cell in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE):
            for name in re.findall(r"`([^`]+)`", cell):
                yield f"{folder[1] if folder else ''}{name}"


def test_the_map_shows_existing_files_and_every_package():
    page = "docs/architecture.md"
    named = {x for x in spans(page) if re.match(r"(keras_transformer|training|export|tests)/", x)}
    named |= {*mapped(page)}
    for name in named:
        assert (ROOT / name).exists(), f"{page}: {name}"
    packages = {f"{path.parent.relative_to(ROOT)}/" for path in sources()}
    covered = named | {f"{pathlib.PurePath(name).parent}/" for name in named}
    assert packages <= covered, f"{page} does not have {sorted(packages - covered)}"


def documented():
    """Yields names in the reference, with the file and the name inside the file."""
    for page in PAGES:
        for name in re.findall(r"^::: (\S+)", read(page), re.MULTILINE):
            module, _, inside = name.rpartition(".")
            yield name, ROOT.joinpath(*module.split(".")).with_suffix(".py"), inside


def test_the_reference_has_every_public_name():
    inside = [name for _, _, name in documented()]
    spaces = [importlib.import_module(f"keras_transformer.{name}") for name in NAMESPACES]
    constants = {"PRESETS"}  # griffe only shows names with a docstring
    assert not {name for space in spaces for name in space.__all__} - {*inside} - constants
    assert len(inside) == len(set(inside))


@pytest.mark.parametrize(("name", "path", "inside"), [*documented()])
def test_the_reference_has_names_that_exist(name, path, inside):
    assert path.exists(), name
    defined = {getattr(node, "name", None) for node in ast.parse(path.read_text("utf-8")).body}
    assert inside in defined, name
